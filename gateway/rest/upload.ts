import type { Readable } from 'node:stream';
import { AgonError } from '../../services/kernel/index.js';

/** An archive, packed, has at most this many bytes; its content is bounded again once it is unpacked. */
export const UPLOAD_BYTES_MAX = 4 * 1024 * 1024;
/** How long a sender may be silent, and how long all of it may take. */
const PATIENCE = { silentMs: 10_000, totalMs: 45_000 } as const;

export interface UploadLimits {
  readonly bytesMax: number;
  readonly silentMs: number;
  readonly totalMs: number;
}

const tooLarge = (bytesMax: number) =>
  new AgonError('AGENTS.TOO_LARGE', `An upload has at most ${bytesMax} bytes.`, { bytesMax });

/**
 * Reads an upload as it comes. What is too large is refused before it has all arrived, and what stops coming is given up;
 * nothing is written anywhere until all of it is here and looked at.
 */
export async function readUpload(
  stream: Readable,
  declaredBytes: string | undefined,
  limits: UploadLimits = { bytesMax: UPLOAD_BYTES_MAX, ...PATIENCE },
): Promise<Buffer> {
  const { bytesMax, silentMs, totalMs } = limits;
  if (Number(declaredBytes ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const pieces: Buffer[] = [];
  let bytes = 0;
  return new Promise<Buffer>((resolve, reject) => {
    const end = (finish: () => void) => {
      clearTimeout(silence);
      clearTimeout(total);
      stream.off('data', take).off('end', done).off('error', broken).off('close', broken);
      stream.pause();
      finish();
    };
    const giveUp = (why: string) =>
      end(() => reject(new AgonError('HTTP.TOO_SLOW', `The upload was given up: ${why}.`)));
    const take = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > bytesMax) return end(() => reject(tooLarge(bytesMax)));
      pieces.push(piece);
      silence.refresh();
    };
    const done = () => end(() => resolve(Buffer.concat(pieces)));
    const broken = () => end(() => reject(new AgonError('HTTP.BROKEN_OFF', 'The upload broke off.')));
    const silence = setTimeout(() => giveUp(`nothing came for ${silentMs} ms`), silentMs);
    const total = setTimeout(() => giveUp(`it took more than ${totalMs} ms`), totalMs);
    stream.on('data', take).once('end', done).once('error', broken).once('close', broken);
  });
}
