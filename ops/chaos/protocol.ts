import type { Sent } from './workload.js';

/** What a writer puts on its pipe, a line each. */
export type Line =
  | { readonly kind: 'sent'; readonly sent: Sent }
  | { readonly kind: 'acknowledged'; readonly acknowledged: Acknowledged };

/** What the store promised: these events, here, for good. */
export interface Acknowledged {
  readonly commandId: string;
  readonly stream: string;
  /** Of the command's last event. */
  readonly revision: number;
  readonly position: number;
  readonly events: number;
}

/** What came through a pipe before its writer was killed. */
export interface Witnessed {
  readonly sent: Map<string, Sent>;
  readonly acknowledged: Map<string, Acknowledged>;
}

/** Reads lines as they come. A last line without its end was cut by the kill and promised nothing. */
export function lineReader(onLine: (line: Line) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(JSON.parse(line) as Line);
  };
}

/** What a reader says about a folder, having opened it and read everything in it. */
export type Answer =
  | { readonly outcome: 'reported'; readonly code: string; readonly message: string }
  | { readonly outcome: 'served'; readonly digest: string; readonly events: number }
  | { readonly outcome: 'inconsistent'; readonly what: string };
