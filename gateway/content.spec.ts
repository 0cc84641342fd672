import { describe, expect, it } from 'vitest';
import { accountDecider, accounts } from '../services/accounts/index.js';
import { contexts } from '../services/index.js';
import { metaOf } from '../services/kernel/fixtures.js';
import {
  AgonError,
  type Command,
  type ContentKind,
  type Handle,
  isAgonError,
  textsIn,
} from '../services/kernel/index.js';
import { blockedIn, Content, plain, withContentRules } from './content.js';

const content = new Content({
  blocked: blockedIn('# of this spec\nfrobnik\nsnark*  # and what begins with it\n*glorp*\n'),
});

describe('what is taken', () => {
  it.each<[ContentKind, string]>([
    ['name', 'minimax'],
    ['name', 'alpha-4'],
    ['title', 'Ada Lovelace'],
    ['title', 'Дмитрий Иванов'],
    ['title', 'Ελένη'],
    ['title', '山田 太郎'],
    ['title', 'José Ñandú-O’Neill'],
    ['title', '👩‍💻 coder'],
    ['title', 'نامه‌ای'],
    ['title', 'Admiral Adminton'],
    ['title', 'Frobniks'],
    ['title', 'St. Petersburg v2.0'],
    ['prompt', 'See https://example.com\n\tand write to ada@example.com.'],
    ['chat', 'good game, 3.5 moves a second'],
    ['chat', 'admin'],
  ])('as a %s: %s', (kind, text) => {
    expect(content.broken(kind, text)).toBeUndefined();
  });
});

describe('what is refused', () => {
  it.each<[ContentKind, string, string]>([
    ['title', '', 'CONTENT.EMPTY'],
    ['title', '  ', 'CONTENT.EMPTY'],
    ['name', 'x'.repeat(40), 'CONTENT.TOO_LONG'],
    ['title', '😀'.repeat(81), 'CONTENT.TOO_LONG'],
    ['chat', 'x'.repeat(501), 'CONTENT.TOO_LONG'],
    ['prompt', 'x'.repeat(32_769), 'CONTENT.TOO_LONG'],
    ['title', 'two\nlines', 'CONTENT.UNREADABLE'],
    ['title', 'red \u001b[31m', 'CONTENT.UNREADABLE'],
    ['title', 'csi \u009b31m', 'CONTENT.UNREADABLE'],
    ['prompt', 'nul \u0000', 'CONTENT.UNREADABLE'],
    ['title', 'evil\u202etxt.exe', 'CONTENT.UNREADABLE'],
    ['title', 'a\u2066b\u2069', 'CONTENT.UNREADABLE'],
    ['title', 'ad\u200bmin', 'CONTENT.UNREADABLE'],
    ['title', 'ad\u200dmin', 'CONTENT.UNREADABLE'],
    ['title', '\u3164', 'CONTENT.UNREADABLE'],
    ['title', 'tags \u{e0041}', 'CONTENT.UNREADABLE'],
    ['title', 'half \ud800', 'CONTENT.UNREADABLE'],
    ['chat', `z${'\u0301'.repeat(9)}`, 'CONTENT.UNREADABLE'],
    ['title', 'Аda', 'CONTENT.CONFUSABLE'],
    ['title', 'pаypal', 'CONTENT.CONFUSABLE'],
    ['name', 'admin', 'CONTENT.RESERVED'],
    ['title', 'Admin', 'CONTENT.RESERVED'],
    ['title', 'ＡＤＭＩＮ', 'CONTENT.RESERVED'],
    ['title', 'ádmïn', 'CONTENT.RESERVED'],
    ['title', '𝓪𝓭𝓶𝓲𝓷', 'CONTENT.RESERVED'],
    ['title', 'The Official Support', 'CONTENT.RESERVED'],
    ['name', 'agon-admin-1', 'CONTENT.RESERVED'],
    ['name', 'ad-min', 'CONTENT.RESERVED'],
    ['title', 'write ada@example.com', 'CONTENT.EMAIL'],
    ['chat', 'ada (at) example (dot) com', 'CONTENT.EMAIL'],
    ['title', 'https://example.test/x', 'CONTENT.LINK'],
    ['title', 'www.example.test', 'CONTENT.LINK'],
    ['chat', 'buy at cheap-coins.shop now', 'CONTENT.LINK'],
    ['chat', 'javascript:alert(1)', 'CONTENT.LINK'],
    ['title', 'Frobnik', 'CONTENT.BLOCKED'],
    ['title', 'fr0bn1k', 'CONTENT.BLOCKED'],
    ['title', 'ＦＲＯＢＮＩＫ!', 'CONTENT.BLOCKED'],
    ['chat', 'f r o b n i k', 'CONTENT.BLOCKED'],
    ['chat', 'f.r.o.b.n.i.k', 'CONTENT.BLOCKED'],
    ['chat', 'фгоbnik you', 'CONTENT.CONFUSABLE'],
    ['name', 'my-frobnik', 'CONTENT.BLOCKED'],
    ['chat', 'snarking', 'CONTENT.BLOCKED'],
    ['chat', 'unGLORPed', 'CONTENT.BLOCKED'],
    ['prompt', 'say\nfrobnik', 'CONTENT.BLOCKED'],
  ])('as a %s: %j by %s', (kind, text, code) => {
    expect(content.broken(kind, text)?.code).toBe(code);
  });

  it('is told with its code, its kind, and what to do', async () => {
    const refused = await content.assert('title', 'Admin').catch((error: unknown) => error);
    expect(isAgonError(refused, 'CONTENT.RESERVED')).toBe(true);
    expect(refused).toMatchObject({ details: { kind: 'title' }, message: expect.stringMatching(/Choose another/) });
  });
});

describe('the rules', () => {
  it('let staff, and nobody else, use names that are kept for it', () => {
    expect(content.broken('title', 'Support', { id: 'op', role: 'operator' })).toBeUndefined();
    expect(content.broken('title', 'Support', { id: 'ada', role: 'owner' })?.code).toBe('CONTENT.RESERVED');
    expect(content.broken('title', 'frobnik', { id: 'op', role: 'operator' })?.code).toBe('CONTENT.BLOCKED');
  });

  it('read what is decorated as what it looks like', () => {
    expect(plain('Ａdmіn')).toBe('admin');
    expect(plain('ḟṝöƅ'.normalize('NFD')).startsWith('fro')).toBe(true);
  });

  it('refuse a list that would block everything', () => {
    expect(() => new Content({ blocked: ['**'] })).toThrow(/blocks everything/);
  });

  it('take no longer for a long text that fits no rule', () => {
    const long = 'a.'.repeat(16_000);
    expect(content.broken('prompt', long)).toBeUndefined();
    expect(content.broken('chat', 'a-'.repeat(250))).toBeUndefined();
    expect(content.broken('chat', 'a@'.repeat(250))).toBeUndefined();
  });
});

describe('somebody else who judges', () => {
  const judge = (flagged: boolean) => {
    const asked: unknown[] = [];
    const review = async (item: unknown) => {
      asked.push(item);
      return { flagged, categories: ['harassment'] };
    };
    return { asked, content: new Content({ moderation: { review } }) };
  };

  it('is asked when the rules have nothing against it, and its word counts', async () => {
    const [strict, kind] = [judge(true), judge(false)];
    await expect(strict.content.assert('title', 'Ada')).rejects.toThrow(/harassment/);
    expect(strict.asked).toEqual([{ kind: 'title', text: 'Ada' }]);
    await kind.content.assert('title', 'Ada');
  });

  it('is not asked about what the rules refuse', async () => {
    const { asked, content: strict } = judge(true);
    await expect(strict.assert('title', 'Admin')).rejects.toThrow(/kept for/);
    expect(asked).toEqual([]);
  });
});

describe('commands', () => {
  const all = contexts.flatMap(({ commands }) => commands);
  const fields = all.flatMap(({ spec }) => textsIn(spec.data).map((field) => ({ ...field, type: spec.type })));
  const nameOf = ({ type, path }: { type: string; path: readonly string[] }) => `${type}.${path.join('.')}`;

  it('say of each free text whether somebody chose it, and of one that nobody chose why not', () => {
    expect(fields.filter(({ mark, patterned }) => !mark && !patterned).map(nameOf)).toEqual([]);
  });

  it('that carry what somebody chose to call something have a rule for it', () => {
    const isName = (path: readonly string[]) => /^(name|title|label|.*Name|.*Title)$/.test(path.at(-1) ?? '');
    expect(fields.filter(({ path, mark }) => isName(path) && !mark).map(nameOf)).toEqual([]);
  });

  it('have the rules that they had', () => {
    const kinds = all.flatMap(({ spec, chosen }) =>
      chosen.map(({ path, kind }) => `${nameOf({ type: spec.type, path })} ${kind}`),
    );
    expect(kinds.sort()).toEqual([
      'EnrolPerson.accountId name',
      'IssueApiKey.name title',
      'RegisterExternalAgent.name name',
      'RegisterOrganisation.accountId name',
      'RegisterOrganisation.displayName title',
      'RegisterOwner.accountId name',
      'RegisterOwner.displayName title',
      'SubmitAgent.name name',
    ]);
  });

  /** Enough for every command of accounts. */
  const DATA = {
    accountId: 'fresh',
    displayName: 'Fresh',
    founderId: 'ada',
    memberId: 'ada',
    organisationId: 'acme',
    personId: '0b9f6a52-3c1e-5d4b-8a77-9f0e1d2c3b4a',
    issuer: 'https://id.example',
    role: 'member',
    keyId: '0'.repeat(12),
    name: 'key',
    scopes: ['read'],
    secretHash: '0'.repeat(64),
    reason: '',
    factor: 'totp',
  };

  it('that take a name for an account have a rule for it', () => {
    const taking = accounts.commands.filter((command) => {
      try {
        const events = accountDecider.decide(new command(DATA as never, metaOf('c1')) as never, accountDecider.initial);
        return events.some(({ type }) => type === 'OwnerRegistered');
      } catch (error) {
        if (!(error instanceof AgonError) || error.code === 'COMMAND.INVALID') throw error;
        return false;
      }
    });
    expect(taking.length).toBeGreaterThan(2);
    for (const { spec, chosen } of taking) {
      const kinds = chosen.filter(({ path }) => path.join() === 'accountId').map(({ kind }) => kind);
      expect({ [spec.type]: kinds }).toEqual({ [spec.type]: ['name'] });
    }
  });

  it.each(all.flatMap((command) => command.chosen.map(({ path: [field = ''] }) => ({ command, field }))))(
    '$command.spec.type are refused by their $field, before anything is done',
    async ({ command, field }) => {
      const { type } = command.spec;
      const handled: string[] = [];
      const handle = withContentRules(
        ((_context: unknown, command: Command) => handled.push(command.type)) as never as Handle,
        content,
      );
      const send = (text: string, role: 'owner' | 'system' = 'owner') => {
        const meta = metaOf('c1', { id: 'ada', role });
        const sent = Object.assign(Object.create(command.prototype), { type, data: { [field]: text }, meta });
        return handle(accounts, sent as Command);
      };
      await expect(send('frobnik')).rejects.toMatchObject({ code: 'CONTENT.BLOCKED' });
      await expect(send('support')).rejects.toMatchObject({ code: 'CONTENT.RESERVED' });
      expect(handled).toEqual([]);
      await send('minimax');
      await send('support', 'system');
      expect(handled).toEqual([type, type]);
    },
  );
});
