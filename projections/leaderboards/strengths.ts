import { hash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { DataSource } from 'typeorm';
import { compiled } from '../../services/runtime/package.js';
import type { Pairing, Strength } from './bradley-terry.js';
import { type BoardRequest, pairingsOf } from './query.js';

/** Beyond this, a hundred resamplings take minutes of a core. */
const PAIRS_MAX = 100_000;
const KEPT_MAX = 64;

/**
 * Bradley-Terry strengths on request. A hundred resamplings take a while, so they run in a thread of their own, once for
 * each state of the board; whoever asks meanwhile waits for the same answer.
 */
export class Strengths {
  private readonly kept = new Map<string, Promise<Strength[]>>();

  constructor(private readonly db: DataSource) {}

  async of(board: BoardRequest): Promise<Strength[]> {
    const pairs = await pairingsOf(this.db, board, PAIRS_MAX);
    const key = hash('sha256', JSON.stringify(pairs));
    const known = this.kept.get(key);
    if (known) return known;
    const answer = inThread({ pairs, seed: Number.parseInt(key.slice(0, 8), 16) });
    this.kept.set(key, answer);
    answer.catch(() => this.kept.delete(key));
    if (this.kept.size > KEPT_MAX) this.kept.delete(this.kept.keys().next().value as string);
    return answer;
  }
}

/** What the thread gets. The seed comes from the board itself: the same results give the same intervals everywhere. */
export interface StrengthsOrder {
  readonly pairs: readonly Pairing[];
  readonly seed: number;
}

function inThread(order: StrengthsOrder): Promise<Strength[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(compiled(import.meta.url, './strengths-thread.js'), { workerData: order });
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`The thread ended with ${code}.`)));
  });
}
