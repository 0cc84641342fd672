import type { Histogram, Registry } from 'prom-client';

interface Row {
  readonly labels: Readonly<Record<string, string>>;
  /** How many fell into each bucket, and beyond the last. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A histogram for what happens at every request: finding the row is one look into a map, where prom-client makes texts
 * of labels. To the registry it is one like others.
 */
export class Timings {
  private readonly rows = new Map<string, Row>();

  constructor(
    readonly name: string,
    private readonly help: string,
    private readonly labelNames: readonly string[],
    private readonly buckets: readonly number[],
    registry: Registry,
  ) {
    registry.registerMetric(this as unknown as Histogram);
  }

  /** Labels as they are named, in that order. */
  observe(seconds: number, ...values: readonly string[]): void {
    const key = values.length === 1 ? (values[0] as string) : values.join('\n');
    let row = this.rows.get(key);
    if (!row) {
      const labels = Object.fromEntries(this.labelNames.map((label, i) => [label, values[i] ?? '']));
      row = { labels, counts: new Float64Array(this.buckets.length + 1), sum: 0 };
      this.rows.set(key, row);
    }
    let at = 0;
    while (at < this.buckets.length && seconds > (this.buckets[at] as number)) at += 1;
    row.counts[at] = (row.counts[at] ?? 0) + 1;
    row.sum += seconds;
  }

  /** Asked for by the registry. */
  async get() {
    const values = [...this.rows.values()].flatMap(({ labels, counts, sum }) => {
      let count = 0;
      const bucket = (value: number, i: number) => {
        count += value;
        const le = this.buckets[i] ?? '+Inf';
        return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count };
      };
      return [
        ...[...counts].map(bucket),
        { metricName: `${this.name}_sum`, labels, value: sum },
        { metricName: `${this.name}_count`, labels, value: count },
      ];
    });
    return { name: this.name, help: this.help, type: 'histogram', values, aggregator: 'sum' };
  }

  reset(): void {
    this.rows.clear();
  }
}
