import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { ownCertificate } from '../../gateway/eventstore/certificate.js';
import { namingNoAddress } from './tls.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-tls-'));
const warnings: string[] = [];
const hear = (warning: Error) => warnings.push(warning.message);
process.on('warning', hear);
const closers: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});
afterAll(() => {
  process.off('warning', hear);
  rmSync(folder, { recursive: true, force: true });
});

/** What a server whose certificate is for this host hears as its name; what became of the connection otherwise. */
async function heardBy(certified: string, asked: string): Promise<string | false | undefined> {
  const file = (kind: string) => join(folder, `${certified}.${kind}`);
  const { cert, key } = ownCertificate(file('crt'), file('key'), certified, Date.now());
  const server = createSecureServer({ cert, key }).listen(0, '0.0.0.0');
  let named: string | false | undefined;
  server.on('secureConnection', (socket: TLSSocket & { servername?: string | false }) => {
    named = socket.servername;
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new Client(`${asked}:${port}`, namingNoAddress(credentials.createSsl(Buffer.from(cert))));
  closers.push(
    () => server.close(),
    () => client.close(),
  );
  await new Promise<void>((resolve, reject) => {
    client.waitForReady(Date.now() + 2_000, (error) => (error ? reject(error) : resolve()));
  });
  return named;
}

describe('a connection by TLS', () => {
  it('names a host by its name, and by its address not at all', async () => {
    expect(await heardBy('127.0.0.1', '127.0.0.1')).toBe(false);
    expect(await heardBy('localhost', 'localhost')).toBe('localhost');
    expect(warnings).toEqual([]);
  });

  it('holds a certificate to the address', async () => {
    await expect(heardBy('localhost', '127.0.0.2')).rejects.toThrow();
  });
});
