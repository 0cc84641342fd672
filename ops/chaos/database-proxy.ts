import { connect, createServer, type Server, type Socket } from 'node:net';

/** What is waited for: a statement, in a transaction that has sent another one before, or the same. */
export interface Trap {
  /** Whatever it says on the way. */
  readonly after: string;
  readonly at: string;
  /** Whether the answer is withheld: the statement arrives, and the connection breaks before anybody hears of it. */
  readonly cut: boolean;
}

interface SetTrap extends Trap {
  sprung(): void;
}

const BEGIN = 'START TRANSACTION';
/** Of a transaction, as much as is looked at: the statements that say what it is about are short and come first or last. */
const SENT_MAX = 256 * 1024;

/**
 * Stands between processes and PostgreSQL, and sees the statements that go by. It knows of no protocol: drivers send a
 * statement at a time, and its text stands in it as it is.
 */
export class DatabaseProxy {
  private traps: SetTrap[] = [];
  private readonly open = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly upstream: () => number | undefined,
  ) {
    server.on('connection', (client) => this.carry(client));
  }

  /** Listens on a free port of loopback. PostgreSQL is where `upstream` says, or away. */
  static async listen(upstream: () => number | undefined): Promise<DatabaseProxy> {
    const server = createServer({ allowHalfOpen: true });
    const proxy = new DatabaseProxy(server, upstream);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as { port: number }).port;
  }

  /** Calls back in the moment in which the statement has been passed on, once. Gives up the trap with what it returns. */
  set(trap: Trap, sprung: () => void): () => void {
    const set: SetTrap = { ...trap, sprung };
    this.traps.push(set);
    return () => this.drop(set);
  }

  async close(): Promise<void> {
    this.server.close();
    for (const socket of this.open) socket.destroy();
  }

  private carry(client: Socket): void {
    const port = this.upstream();
    if (port === undefined) {
      client.on('error', () => {}).destroy();
      return;
    }
    const server = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const socket of [client, server]) {
      this.open.add(socket);
      socket.setNoDelay(true).once('close', () => this.open.delete(socket));
      socket.on('error', () => socket.destroy());
    }
    client.once('close', () => server.end());
    server.once('close', () => client.destroy());
    let sent = '';
    client.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      sent = text.includes(BEGIN) ? text : (sent + text).slice(-SENT_MAX);
      const trap = this.traps.find(({ after, at }) => text.includes(at) && sent.includes(after));
      server.write(chunk);
      if (!trap) return;
      this.drop(trap);
      // What was written goes out all the same: this end of the connection is closed, and the other one is not.
      if (trap.cut) client.destroy();
      trap.sprung();
    });
    client.on('end', () => server.end());
    server.on('data', (chunk) => client.write(chunk));
    server.on('end', () => client.end());
  }

  private drop(trap: SetTrap): void {
    this.traps = this.traps.filter((each) => each !== trap);
  }
}
