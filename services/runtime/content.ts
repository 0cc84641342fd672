import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { blockedIn, Content } from '../../gateway/content.js';
import { HttpModeration } from '../adapters/moderation.js';
import { AgonError, asAgonError } from '../kernel/index.js';
import type { Config } from './settings.js';

/** The rules for names and texts, with the list and the moderation API that the configuration names. */
export function contentRulesFrom(config: Config, log: Logger): Content {
  const { moderationUrl: url, moderationSecret: key, moderationTimeoutMs: timeoutMs, moderationFails } = config;
  const tell = (err: unknown) => log.warn({ err, fails: moderationFails }, 'the moderation API did not answer');
  const moderation = url ? new HttpModeration({ url, key, timeoutMs, onFailure: moderationFails, tell }) : undefined;
  return new Content({ blocked: blockedWords(config.blockedWords), moderation });
}

function blockedWords(path: string | undefined): string[] {
  if (path === undefined) return [];
  try {
    return blockedIn(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new AgonError('CONFIG.INVALID', `The list of blocked words cannot be read: ${asAgonError(error).message}.`);
  }
}
