import type { Metadata } from '@grpc/grpc-js';
import { AgonError, type Ids } from '../../services/kernel/index.js';

/** The bearer token of a call; empty when there is none. */
export function bearerOf(metadata: Metadata): string {
  const [value] = metadata.get('authorization');
  return /^Bearer (\S+)$/i.exec(String(value ?? ''))?.[1] ?? '';
}

const REPLACED_MAX = 1_000;

/**
 * Who is who among the runners that are connected. Kept in memory: after a restart runners register again. A runner has
 * one session, so of two processes with the same key only the later one goes on.
 */
export class Sessions {
  private readonly runners = new Map<string, string>();
  private readonly tokens = new Map<string, string>();
  private readonly replaced = new Set<string>();

  constructor(private readonly ids: Ids) {}

  open(runnerId: string): string {
    const before = this.tokens.get(runnerId);
    if (before !== undefined) {
      this.runners.delete(before);
      this.replaced.add(before);
      if (this.replaced.size > REPLACED_MAX) this.replaced.delete(this.replaced.values().next().value as string);
    }
    const token = this.ids();
    this.tokens.set(runnerId, token);
    this.runners.set(token, runnerId);
    return token;
  }

  runnerOf(metadata: Metadata): string {
    const token = bearerOf(metadata);
    const runnerId = this.runners.get(token);
    if (runnerId !== undefined) return runnerId;
    if (this.replaced.has(token)) {
      throw new AgonError('RUNNERS.REPLACED', 'Another process has registered with the same key since.');
    }
    throw new AgonError('AUTH.UNAUTHENTICATED', 'This session is not known here. Register first.');
  }
}
