import { colour, EXIT, type Lent, type OutputOptions, print, table } from './output.js';
import { callArena } from './remote.js';

interface Shown {
  readonly webhookId: string;
  readonly url: string;
  readonly types: readonly string[];
  readonly status: string;
  readonly failed: readonly { readonly why: string }[];
}

const at = (account: string, rest = '') => `/v1/accounts/${encodeURIComponent(account)}/webhooks${rest}`;

/** `agon webhook`: where the arena tells owners and operators what happened. */
export function addWebhookCommands({ program, command, run, dataDirOf }: Lent): void {
  const webhook = program.command('webhook').description('Have addresses told what happens.').exitOverride();
  const account = ['<account>', 'whose events; "*" for everybody\'s'] as const;
  const id = ['<webhook>', 'its id, see "agon webhook list"'] as const;

  command(webhook, 'add', 'Tell an address what happens to an account. The secret for its signatures is shown once.')
    .argument(...account)
    .argument('<url>', 'an https address on the public internet')
    .option('--types <list>', 'only these types of events, with commas between (default: all)')
    .addHelpText(
      'after',
      '\nExample:\n  agon webhook add ada https://example.com/agon --types MatchSettled,MatchVoided',
    )
    .action(
      run(async (name: string, url: string, flags: OutputOptions & { data?: string; types?: string }) => {
        const types = flags.types?.split(',').map((type) => type.trim());
        const body = { url, ...(types ? { types } : {}) };
        const added = await callArena<Shown & { secret: string }>(dataDirOf(flags), 'POST', at(name), body);
        const text = `${colour.green('added')}: ${added.webhookId}\nsecret  ${added.secret}  (shown once: keep it)`;
        print(flags, added, text);
        return EXIT.ok;
      }),
    );
  command(webhook, 'list', 'Show the webhooks of an account, and what could not be delivered.')
    .argument(...account)
    .action(
      run(async (name: string, flags: OutputOptions & { data?: string }) => {
        const { items } = await callArena<{ items: Shown[] }>(dataDirOf(flags), 'GET', at(name));
        const rows = items.map(({ webhookId, status, url, types, failed }) => {
          return [webhookId, status, `${failed.length}`, url, types.join(','), failed.at(-1)?.why ?? ''];
        });
        const align = ['left', 'left', 'right', 'left', 'left', 'left'] as const;
        print(flags, items, table(['webhook', 'status', 'failed', 'url', 'types', 'last failure'], rows, align));
        return EXIT.ok;
      }),
    );
  command(webhook, 'remove', 'Tell an address nothing any more.')
    .argument(...account)
    .argument(...id)
    .action(
      run(async (name: string, webhookId: string, flags: OutputOptions & { data?: string }) => {
        const receipt = await callArena(dataDirOf(flags), 'DELETE', at(name, `/${encodeURIComponent(webhookId)}`));
        print(flags, receipt, `${colour.green('removed')}: ${webhookId}`);
        return EXIT.ok;
      }),
    );
  command(webhook, 'test', 'Send a test message now, once. Exits 1 if it does not arrive.')
    .argument(...account)
    .argument(...id)
    .action(
      run(async (name: string, webhookId: string, flags: OutputOptions & { data?: string }) => {
        const path = at(name, `/${encodeURIComponent(webhookId)}/test`);
        const tested = await callArena<{ delivered: boolean; detail: string }>(dataDirOf(flags), 'POST', path);
        print(
          flags,
          tested,
          `${tested.delivered ? colour.green('delivered') : colour.red('failed')}: ${tested.detail}`,
        );
        return tested.delivered ? EXIT.ok : EXIT.failed;
      }),
    );
  command(webhook, 'replay', 'Deliver all dead letters again, and go on with a webhook that was paused.')
    .argument(...account)
    .argument(...id)
    .action(
      run(async (name: string, webhookId: string, flags: OutputOptions & { data?: string }) => {
        const path = at(name, `/${encodeURIComponent(webhookId)}/replay`);
        const receipt = await callArena<{ events: string[] }>(dataDirOf(flags), 'POST', path);
        const text = receipt.events.length > 0 ? 'what had failed is delivered again' : 'there was nothing to replay';
        print(flags, receipt, text);
        return EXIT.ok;
      }),
    );
}
