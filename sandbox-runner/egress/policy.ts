import { lstatSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { AgonError } from '../../services/kernel/index.js';
import { KiB, type Limits, limitsFrom, MiB, whole } from '../limits.js';

/** Per agent and match. */
const caps = z.strictObject({
  requests: whole(1, 100_000, 200),
  connections: whole(1, 256, 8),
  /** Both counted on the wire to the upstream: out is what was sent there, in is what came back. */
  bytesOut: whole(1 * KiB, 1024 * MiB, 1 * MiB),
  bytesIn: whole(1 * KiB, 1024 * MiB, 16 * MiB),
  headerBytes: whole(1 * KiB, 64 * KiB, 16 * KiB),
  /** For the head of a request to arrive. */
  headMs: whole(50, 60_000, 5_000),
  connectMs: whole(50, 60_000, 5_000),
  idleMs: whole(50, 600_000, 30_000),
  /** For one request, or one tunnel, from its first byte to its last. */
  totalMs: whole(50, 3_600_000, 60_000),
});

const label = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
const name = new RegExp(`^(\\*\\.)?${label}(\\.${label})*$`);
/** The last part of a name is never a number, and an address always ends in one. */
const isAddress = (host: string): boolean => /(^|\.)(\d+|0x[0-9a-f]*)$/.test(host);
/** A name, or `*.` and a name for all that is below it. Never an address: names are what people can judge. */
const host = z
  .string()
  .max(253)
  .regex(name, 'is no host name in lower case, such as api.example.com or *.example.com')
  .refine((text) => !isAddress(text), 'is an address; only names can be allowed');

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What frames a message, or belongs to one connection, is the proxy's own. */
const framing = /^(host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/i;
const secretMark = /\{\{secret:([A-Za-z0-9_]+)\}\}/g;

/** One place that may be reached. */
const rule = z
  .strictObject({
    host,
    port: whole(1, 65_535, 443),
    /** For requests that the proxy can read. With one of these, or with `upgrade`, the host gets no tunnel. */
    methods: z
      .array(z.string().regex(/^[A-Z]+$/, 'is no method, such as GET'))
      .min(1)
      .optional(),
    paths: z
      .array(z.string().regex(/^\/[\x21-\x7e]*$/, 'is no path that starts with /'))
      .min(1)
      .optional(),
    /** The agent asks in the clear, on the loopback device; the proxy speaks TLS to the host. */
    upgrade: z.literal('https').optional(),
    /** Set by the proxy on every request, in place of what the agent sent; `{{secret:NAME}}` is filled in there. */
    headers: z
      .record(z.string(), z.string().regex(/^[\x20-\x7e]*$/, 'has characters that no header may have'))
      .refine((headers) => Object.keys(headers).every((key) => token.test(key) && !framing.test(key)), {
        message: 'have a name that is none, or that is set by the proxy itself',
      })
      .optional(),
    /** For hosts of one's own network: lifts the ban on loopback and private addresses, and on no others. */
    allowPrivate: z.boolean().optional(),
  })
  .refine((each) => each.headers === undefined || each.upgrade === 'https', {
    path: ['headers'],
    message: 'are only set on requests that the proxy makes itself over TLS: add "upgrade": "https"',
  });

export type Rule = z.output<typeof rule>;

/** What one agent may reach, and how much of it. Whatever is not written here is refused. */
const grant = z.strictObject({ allow: z.array(rule).min(1).max(64), caps: caps.prefault({}) });
export type Grant = z.output<typeof grant>;

const secret = z.union([z.strictObject({ env: z.string().min(1) }), z.strictObject({ file: z.string().min(1) })]);

const policy = z.strictObject({
  agents: z.record(z.string().min(1).max(80), grant),
  secrets: z.record(z.string().regex(/^[A-Za-z0-9_]+$/), secret).default({}),
  /** Files in PEM, trusted beside those that everybody trusts. */
  authorities: z.array(z.string().min(1)).default([]),
  /** For matches in which somebody was granted egress: an answer from afar takes longer than a thought. */
  limits: z.record(z.string(), z.number()).default({}),
  /** Gets every request as a line of JSON. */
  logFile: z.string().min(1).optional(),
});

/** A policy that was checked, with what the files that it names hold. */
export interface EgressPolicy extends Pick<z.output<typeof policy>, 'agents' | 'authorities' | 'logFile'> {
  /** Values by name. They stay in the process of the runner. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly limits: Partial<Limits>;
}

const bad = (message: string, details: Record<string, unknown> = {}): AgonError =>
  new AgonError('EGRESS.BAD_POLICY', message, details);

const readText = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw bad(`${file} cannot be read: ${(error as Error).message}.`);
  }
};

/** A file that others can read is no place for a secret, and a link may lead anywhere. */
function secretIn(file: string): string {
  const text = readText(file);
  const { mode } = lstatSync(file);
  if ((mode & 0o170_000) !== 0o100_000 || (mode & 0o077) !== 0) {
    throw new AgonError(
      'EGRESS.OPEN_SECRET',
      `${file} holds a secret and is open to others. Close it: chmod 600 ${file}`,
    );
  }
  return text.replace(/\r?\n$/, '');
}

/** Short values would be found, and blotted out, in places where they mean nothing. */
const secretChars = 8;

function secretsFrom(sources: z.output<typeof policy>['secrets'], folder: string, env: NodeJS.ProcessEnv) {
  return new Map(
    Object.entries(sources).map(([key, source]) => {
      const value = 'env' in source ? env[source.env] : secretIn(resolve(folder, source.file));
      const where = 'env' in source ? `the environment variable ${source.env}` : source.file;
      if (value === undefined)
        throw new AgonError('EGRESS.NO_SECRET', `The secret ${key} is not there: ${where} is not set.`);
      if (!/^[\x21-\x7e]+$/.test(value) || value.length < secretChars) {
        const what = `The secret ${key}, from ${where}, is not ${secretChars} or more printable characters in one line.`;
        throw new AgonError('EGRESS.NO_SECRET', what);
      }
      return [key, value] as const;
    }),
  );
}

/** @example fillSecrets('Bearer {{secret:KEY}}', new Map([['KEY', 'abcdefgh']])) // 'Bearer abcdefgh' */
export const fillSecrets = (text: string, secrets: ReadonlyMap<string, string>): string =>
  text.replace(secretMark, (_, key: string) => {
    const value = secrets.get(key);
    if (value === undefined) throw bad(`A header names the secret ${key}, which is not among the secrets.`);
    return value;
  });

/** Checks a policy, whose relative paths start at `folder`, and reads the secrets and certificates that it names. */
export function policyFrom(value: unknown, folder: string, env: NodeJS.ProcessEnv): EgressPolicy {
  const parsed = policy.safeParse(value);
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'policy'}: ${issue.message}`);
    throw bad(`The egress policy cannot be used: ${issues.join('; ')}.`, { issues });
  }
  const { agents, logFile } = parsed.data;
  const secrets = secretsFrom(parsed.data.secrets, folder, env);
  for (const { allow } of Object.values(agents)) {
    for (const { headers = {} } of allow) for (const text of Object.values(headers)) fillSecrets(text, secrets);
  }
  const limits = parsed.data.limits as Partial<Limits>;
  limitsFrom(limits);
  const authorities = parsed.data.authorities.map((file) => readText(resolve(folder, file)));
  return { agents, secrets, authorities, limits, logFile: logFile && resolve(folder, logFile) };
}

/** A policy file, or hosts with commas between (`api.example.com,*.example.org:8443`) for the agents that are named. */
export function readPolicy(fileOrHosts: string, agents: readonly string[], env: NodeJS.ProcessEnv): EgressPolicy {
  if (/\.json$/.test(fileOrHosts)) {
    const text = readText(fileOrHosts);
    try {
      return policyFrom(JSON.parse(text), dirname(resolve(fileOrHosts)), env);
    } catch (error) {
      throw error instanceof SyntaxError ? bad(`${fileOrHosts} is not JSON: ${error.message}.`) : error;
    }
  }
  if (agents.length === 0) throw bad(`${fileOrHosts} is no policy file; its name ends in .json.`);
  const allow = fileOrHosts.split(',').map((each) => {
    const [host = '', port] = each.trim().split(':');
    return { host, ...(port === undefined ? {} : { port: Number(port) }) };
  });
  return policyFrom({ agents: Object.fromEntries(agents.map((agent) => [agent, { allow }])) }, '.', env);
}
