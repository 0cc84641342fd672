import { stdin, stdout } from 'node:process';
import { fastify } from 'fastify';

/** The least that an answer over HTTP can be: bare Fastify, no hooks, a constant. Ends when its input does. */
const app = fastify();
app.get('/', async () => ({ hello: 'world' }));
const url = await app.listen({ host: '127.0.0.1', port: 0 });
stdout.write(`${JSON.stringify({ url })}\n`);
stdin.resume().once('end', () => void app.close());
