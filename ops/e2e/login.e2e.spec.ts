import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runWith, type Served, serveWith, temporaryFolder } from './agon.contract.js';

const folder = temporaryFolder();
const data = join(folder.path, 'data');
const elsewhere = join(folder.path, 'elsewhere');
const credentials = join(folder.path, 'config', 'credentials.json');
const agent = join(folder.path, 'mine.js');
let arena: Served;

beforeAll(async () => {
  writeFileSync(agent, 'export const act = ({ legal }) => legal[0];\n');
  arena = await serveWith({}, data, '--no-ladder');
});

afterAll(async () => {
  await arena?.stop();
  folder.remove();
});

const env = { AGON_CREDENTIALS: credentials, AGON_PASSWORD: 'correct horse battery' };
async function agon(...args: string[]) {
  const { code, stdout, stderr } = await runWith(env, ...args, '--json');
  return { code, said: JSON.parse((code === 0 ? stdout : stderr).trim()) };
}
/** From another folder, where no arena runs and no operator's token is. */
const away = (...args: string[]) => agon(...args, '--data', elsewhere);

describe('the command line', () => {
  it('acts as the operator of the folder, as long as nobody signed in', async () => {
    expect((await agon('whoami', '--data', data)).said).toMatchObject({ accountId: 'operator', role: 'operator' });
    expect((await away('whoami')).said.error.code).toBe('ARENA.NOT_RUNNING');
  });

  it('signs in to an arena elsewhere, and its commands act as whoever did', async () => {
    const made = await away('login', 'ada', '--register', '--arena', arena.url);
    expect(made).toMatchObject({ code: 0, said: { accountId: 'ada', arena: arena.url } });
    expect(statSync(credentials).mode & 0o777).toBe(0o600);
    expect((await away('whoami')).said).toMatchObject({ accountId: 'ada', role: 'owner' });
    const submit = (owner: string) => away('agent', 'submit', agent, '--owner', owner, '--games', 'tic-tac-toe');
    expect((await submit('ada')).said).toMatchObject({ id: 'ada.mine', outcome: 'submitted' });
    expect((await submit('bob')).said.error.code).toBe('AUTH.FORBIDDEN');
    const key = await away('apikey', 'create', 'ada');
    expect(key.said.key).toMatch(/^agon_ada_/);
    // On the arena's own machine, too: whoever signed in is themselves until they sign out.
    expect((await agon('whoami', '--data', data)).said.accountId).toBe('ada');
  });

  it('shows what the arena elsewhere says of a wallet to whose it is, and to nobody else', async () => {
    const token = readFileSync(join(data, 'operator.token'), 'utf8').trim();
    const query = 'mutation { grantCredits(accountId: "ada", amountCents: "1250") { id } }';
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    await fetch(`${arena.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    await away('wallet', 'budget', 'ada', '--currency', 'PLAY', '--per-day', '5');
    expect((await away('wallet', 'show', 'ada')).said).toMatchObject({
      accountId: 'ada',
      purses: [{ currency: 'PLAY', availableCents: '1250', heldCents: '0' }],
      frozen: false,
      budgets: [{ perDayCents: '500', spentTodayCents: '0' }],
    });
    const inWords = await runWith(env, 'wallet', 'show', 'ada', '--data', elsewhere);
    expect(inWords.stdout).toMatch(/^PLAY +12\.50 +0\.00 +0\.00 +0\.00$/m);
    expect(inWords.stdout).toContain('budget of all agents in PLAY: a day 5.00; 0.00 spent');
    const lines = async () => (await away('wallet', 'statement', 'ada')).said;
    await expect
      .poll(lines)
      .toMatchObject([{ eventType: 'CreditsGranted', amountCents: '1250', balanceCents: '1250' }]);
    for (const command of ['show', 'statement']) {
      expect(await away('wallet', command, 'bob')).toMatchObject({
        code: 1,
        said: { error: { code: 'AUTH.FORBIDDEN' } },
      });
    }
  });

  it('renews the token when it has to, also when two commands find out at once', async () => {
    const kept = () => JSON.parse(readFileSync(credentials, 'utf8'));
    const before = kept();
    before.arenas[arena.url].renewAtMs = 0;
    writeFileSync(credentials, JSON.stringify(before));
    const both = await Promise.all([away('whoami'), away('whoami')]);
    expect(both.map(({ said }) => said.accountId)).toEqual(['ada', 'ada']);
    expect(kept().arenas[arena.url].refreshToken).not.toBe(before.arenas[arena.url].refreshToken);
  });

  it('signs out, here and at the arena', async () => {
    const { accessToken } = JSON.parse(readFileSync(credentials, 'utf8')).arenas[arena.url];
    expect((await away('logout', '--arena', arena.url)).said).toMatchObject({ accountId: 'ada' });
    const headers = { authorization: `Bearer ${accessToken}` };
    expect((await fetch(`${arena.url}/v1/auth/me`, { headers })).status).toBe(401);
    expect((await away('whoami')).said.error.code).toBe('ARENA.NOT_RUNNING');
    expect((await agon('whoami', '--data', data)).said.accountId).toBe('operator');
  });

  it('is refused with the wrong password, and sends none in clear over a network', async () => {
    const wrong = await runWith(
      { ...env, AGON_PASSWORD: 'wrong password' },
      'login',
      'ada',
      '--arena',
      arena.url,
      '--json',
    );
    expect([wrong.code, JSON.parse(wrong.stderr).error.code]).toEqual([1, 'AUTH.BAD_CREDENTIALS']);
    expect((await away('login', 'ada', '--arena', 'http://agon.example')).said.error.code).toBe('AUTH.INSECURE');
    expect((await away('login', '--arena', arena.url)).said.error.code).toBe('AUTH.NO_ACCOUNT');
  });
});
