import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { appendFileSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { noEgress } from '../drivers/wasm.js';
import type { MatchJob, Progress } from '../protocol.js';
import type { MatchRecord } from '../referee.js';
import { Account, type Caller, type EgressEntry, entryLine } from './log.js';
import type { EgressPolicy, Grant } from './policy.js';
import { EgressProxy } from './proxy.js';
import type { Resolve } from './target.js';

interface EgressPorts {
  readonly resolve?: Resolve;
  readonly onEntry?: (entry: EgressEntry) => void;
}

type Play = (job: MatchJob, onProgress?: (progress: Progress) => void) => Promise<MatchRecord>;

/**
 * The way out of the sandboxes of one runner. For each match it opens a proxy for each seat that was granted one, and
 * closes it with the match. Names, certificates and secrets are this process's; a sandbox gets a socket, and no more.
 */
export class Egress {
  private readonly resolve: Resolve;
  private readonly onEntry: (entry: EgressEntry) => void;
  private readonly authorities: readonly string[];
  private folder: string | undefined;

  constructor(
    private readonly policy: EgressPolicy,
    ports: EgressPorts = {},
  ) {
    this.resolve = ports.resolve ?? ((host) => lookup(host, { all: true, verbatim: true }));
    this.onEntry = ports.onEntry ?? (() => {});
    this.authorities = [...rootCertificates, ...policy.authorities];
  }

  /** Plays a match with `play`, its agents with what they were granted. */
  async play(job: MatchJob, onProgress: ((progress: Progress) => void) | undefined, play: Play): Promise<MatchRecord> {
    const known = this.policy.agents;
    const grants = job.agents.map(({ agentId = '' }) => (Object.hasOwn(known, agentId) ? known[agentId] : undefined));
    if (grants.every((grant) => grant === undefined)) return play(job, onProgress);
    const inWasm = job.agents.map(({ runtime = 'javascript' }) => runtime === 'javascript');
    if (grants.some((grant, seat) => grant && inWasm[seat])) throw noEgress();
    const accounts = grants.map((grant) => grant && new Account());
    const endpoints: (Awaited<ReturnType<Egress['open']>> | undefined)[] = [];
    const closeAll = () => Promise.all(endpoints.map((endpoint) => endpoint?.close()));
    try {
      for (const [seat, { agentId = '' }] of job.agents.entries()) {
        const grant = grants[seat];
        const caller = { matchId: job.matchId, seat, agentId };
        const heard = (entry: EgressEntry): void => {
          accounts[seat]?.add(entry);
          onProgress?.({ kind: 'log', seat, text: `${entryLine(entry)}\n` });
        };
        endpoints.push(grant && (await this.open(caller, grant, heard)));
      }
      const agents = job.agents.map((agent, seat) => ({ ...agent, endpoint: endpoints[seat]?.endpoint }));
      const limits = { ...this.policy.limits, ...job.limits };
      const record = await play({ ...job, agents, limits }, onProgress);
      // What is still under way is cut off now, so that it is in the sums.
      await closeAll();
      const usage = record.usage.map((each, seat) => {
        const egress = accounts[seat]?.sums();
        return egress ? { ...each, egress } : each;
      });
      return { ...record, usage, deterministic: false };
    } finally {
      await closeAll();
    }
  }

  /** A proxy on a socket of its own, for one agent. */
  async open(caller: Caller, grant: Grant, heard: (entry: EgressEntry) => void = () => {}) {
    const folder = this.ensureFolder();
    const socket = join(folder, `${randomBytes(8).toString('hex')}.sock`);
    const { secrets, logFile } = this.policy;
    const proxy = await EgressProxy.listen(socket, {
      caller,
      grant,
      secrets,
      authorities: this.authorities,
      resolve: this.resolve,
      onEntry: (entry) => {
        heard(entry);
        this.onEntry(entry);
        if (logFile) appendFileSync(logFile, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
      },
    });
    chmodSync(socket, 0o600);
    const close = async (): Promise<void> => {
      await proxy.close();
      rmSync(socket, { force: true });
    };
    return { endpoint: { socket, authorities: join(folder, 'authorities.pem') }, close };
  }

  close(): void {
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
    this.folder = undefined;
  }

  /** Passable for the users of the sandboxes, who find nothing in it that is not theirs. */
  private ensureFolder(): string {
    if (this.folder) return this.folder;
    const folder = mkdtempSync(join(tmpdir(), 'agon-egress-'));
    writeFileSync(join(folder, 'authorities.pem'), this.authorities.join('\n'), { mode: 0o644 });
    chmodSync(folder, 0o711);
    this.folder = folder;
    return folder;
  }
}
