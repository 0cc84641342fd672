import { describe, expect, it } from 'vitest';
import { bucketOf, callerAt, isLocal, Seats } from './caller.js';

describe('a caller', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['no:address', 'no:address'],
  ])('at %s is the one at %s', (ip, caller) => {
    expect(callerAt(ip)).toBe(caller);
  });

  it.each([
    ['127.0.0.1', 0, true],
    ['::ffff:127.0.0.1', 0, true],
    ['::1', 0, true],
    ['::2', 0, false],
    ['127.0.0.1', 1, false],
    ['128.0.0.1', 0, false],
  ])('at %s behind %i proxies is on this machine: %s', (ip, proxies, local) => {
    expect(isLocal(ip, proxies)).toBe(local);
  });

  it('has the bucket of its agent, and staff always its own', () => {
    const ada = { id: 'ada', role: 'owner' } as const;
    expect(bucketOf(ada)).toBe('actor:ada');
    expect(bucketOf(ada, 'ada.bot')).toBe('agent:ada.bot');
    expect(bucketOf({ id: 'op', role: 'operator' }, 'ada.bot')).toBe('actor:op');
  });
});

describe('seats', () => {
  it('are so many for each caller and so many in all, and come back once', () => {
    const seats = new Seats(3, 2);
    const [one, two] = [seats.take('a'), seats.take('a')];
    expect(one && two).toBeDefined();
    expect(seats.take('a')).toBeUndefined();
    expect(seats.take('b')).toBeDefined();
    expect(seats.take('c')).toBeUndefined();
    one?.();
    one?.();
    expect(seats.take('c')).toBeDefined();
    expect(seats.hasRoom('a')).toBe(false);
  });
});
