import { connect, type Socket } from 'node:net';
import { AgonError } from '../../services/kernel/index.js';

export interface Shot {
  readonly url: string;
  readonly body?: string;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Sends one request over and over on so many connections, one at a time on each, and says how many were answered a
 * second. It is as thin as can be, since it shares the machine with what it measures, and the same for all.
 */
export async function load({ url, body }: Shot, requests: number, connections: number): Promise<number> {
  const { hostname, port, pathname, search, host } = new URL(url);
  const head = [
    `${body === undefined ? 'GET' : 'POST'} ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    ...(body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
  ];
  const shot = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`);
  let [sent, answered] = [0, 0];
  const sockets: Socket[] = [];
  const startedMs = performance.now();
  let over = false;
  // It never sleeps: waking it would cost whoever answers, and the slower one the more often.
  const stayAwake = () => over || setImmediate(stayAwake);
  stayAwake();
  try {
    await new Promise<void>((resolve, reject) => {
      const open = () => {
        const socket = connect(Number(port), hostname).setNoDelay(true);
        sockets.push(socket);
        const fire = () => {
          if (sent >= requests) return;
          sent += 1;
          socket.write(shot);
        };
        let rest: Buffer = Buffer.alloc(0);
        socket.on('connect', fire).on('error', reject);
        socket.on('data', (piece: Buffer) => {
          rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
          const whole = lengthOf(rest);
          if (whole === undefined || rest.length < whole) return;
          if (!rest.subarray(0, 12).equals(GOOD)) {
            reject(new AgonError('BENCH.NOT_ANSWERED', `${url} answered: ${rest.toString('utf8', 0, 400)}`));
          }
          rest = rest.subarray(whole);
          answered += 1;
          if (answered === requests) resolve();
          else fire();
        });
      };
      for (let i = 0; i < connections; i++) open();
    });
    return (answered / (performance.now() - startedMs)) * 1000;
  } finally {
    over = true;
    for (const socket of sockets) socket.destroy();
  }
}

const GOOD = Buffer.from('HTTP/1.1 200');

/** How long an answer is, head and body, once its head is there. */
function lengthOf(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const declared = /content-length: (\d+)/i.exec(bytes.toString('latin1', 0, end))?.[1];
  return end + HEAD_END.length + Number(declared ?? 0);
}
