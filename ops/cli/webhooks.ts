import type { AgonCommand } from './command.js';
import { colour, type Flags, listOf, table } from './output.js';
import { callArena } from './remote.js';

interface Webhook {
  readonly webhookId: string;
  readonly url: string;
  readonly types: readonly string[];
  readonly status: string;
  readonly failed: readonly { readonly why: string }[];
}

const at = (account: string, webhookId?: string, rest = '') =>
  `/v1/accounts/${encodeURIComponent(account)}/webhooks${webhookId ? `/${encodeURIComponent(webhookId)}` : ''}${rest}`;

/** `agon webhook`: where the arena tells owners and operators what happened. */
export function addWebhookCommands(program: AgonCommand): void {
  const webhook = program.group('webhook', 'Have addresses told what happens.');
  const ofAccount = (name: string, summary: string) =>
    webhook(name, summary).argument('<account>', 'whose events; "*" for everybody\'s');
  const ofOne = (name: string, summary: string) =>
    ofAccount(name, summary).argument('<webhook>', 'its id, see "agon webhook list"');

  ofAccount('add', 'Tell an address what happens to an account. The secret for its signatures is shown once.')
    .argument('<url>', 'an https address on the public internet')
    .option('--types <list>', 'only these types of events, with commas between (default: all)')
    .example('agon webhook add ada https://example.com/agon --types MatchSettled,MatchVoided')
    .does(async (dataDir, account: string, url: string, flags: Flags & { types?: string }) => {
      const body = { url, ...(flags.types === undefined ? {} : { types: listOf(flags.types) }) };
      const added = await callArena<Webhook & { secret: string }>(dataDir, 'POST', at(account), body);
      const text = `${colour.green('added')}: ${added.webhookId}\nsecret  ${added.secret}  (shown once: keep it)`;
      return { json: added, text };
    });
  ofAccount('list', 'Show the webhooks of an account, and what could not be delivered.').does(
    async (dataDir, account: string) => {
      const { items } = await callArena<{ items: Webhook[] }>(dataDir, 'GET', at(account));
      const rows = items.map(({ webhookId, status, url, types, failed }) => {
        return [webhookId, status, failed.length, url, types.join(','), failed.at(-1)?.why ?? ''];
      });
      return { json: items, text: table(['webhook', 'status', '>failed', 'url', 'types', 'last failure'], rows) };
    },
  );
  ofOne('remove', 'Tell an address nothing any more.').does(async (dataDir, account: string, webhookId: string) => {
    const receipt = await callArena(dataDir, 'DELETE', at(account, webhookId));
    return { json: receipt, text: `${colour.green('removed')}: ${webhookId}` };
  });
  ofOne('test', 'Send a test message now, once. Exits 1 if it does not arrive.').does(
    async (dataDir, account: string, webhookId: string) => {
      const path = at(account, webhookId, '/test');
      const tested = await callArena<{ delivered: boolean; detail: string }>(dataDir, 'POST', path);
      const how = tested.delivered ? colour.green('delivered') : colour.red('failed');
      return { json: tested, text: `${how}: ${tested.detail}`, good: tested.delivered };
    },
  );
  ofOne('replay', 'Deliver all dead letters again, and go on with a webhook that was paused.').does(
    async (dataDir, account: string, webhookId: string) => {
      const path = at(account, webhookId, '/replay');
      const receipt = await callArena<{ events: string[] }>(dataDir, 'POST', path);
      const text = receipt.events.length > 0 ? 'what had failed is delivered again' : 'there was nothing to replay';
      return { json: receipt, text };
    },
  );
}
