import { AgonError } from '../../services/kernel/index.js';
import { type Architecture, allowedCalls, egressCalls, special } from './syscalls.js';

/** The three kinds of classic BPF instruction that are needed here. */
const load = 0x20; // BPF_LD | BPF_W | BPF_ABS
const jumpEqual = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const jumpAtLeast = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const jumpIfSet = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const answer = 0x06; // BPF_RET | BPF_K

/** What the kernel does with a call. */
export const verdict = {
  allow: 0x7fff_0000,
  kill: 0x8000_0000,
  notPermitted: 0x0005_0001, // EPERM
  notThere: 0x0005_0026, // ENOSYS
} as const;

const architectureToken: Record<Architecture, number> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
/** On x86_64 a second set of numbers, for programs with 32-bit pointers, starts here. */
const x32 = 0x4000_0000;

/** Where the kernel puts what is judged: number, architecture, then six arguments of two words each, low word first. */
const numberAt = 0;
const architectureAt = 4;
const argumentAt = (index: number): number => 16 + 8 * index;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const namespaceFlags = 0x7e02_0000;
const unixFamily = 1;
/** TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX and FIOCLEX: questions, and flags of one's own descriptors. */
const harmlessIoctls = [0x5401, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451];
/** PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME and PR_SET_VMA. */
const harmlessPrctls = [1, 3, 15, 16, 0x5356_4d41];

/** AF_UNIX, AF_INET and AF_INET6; SOCK_STREAM with and without SOCK_NONBLOCK and SOCK_CLOEXEC; no protocol, or TCP. */
const streamSockets = [
  [unixFamily, 2, 10],
  [1, 0x801, 0x8_0001, 0x8_0801],
  [0, 6],
] as const;
/** By level: reuse, buffers, keeping alive and timeouts of sockets; delay and timers of TCP; IPv6 alone. */
const harmlessOptions = [
  [1, [2, 4, 7, 8, 9, 13, 15, 20, 21]],
  [6, [1, 3, 4, 5, 6, 18]],
  [41, [26]],
] as const;

interface Instruction {
  readonly code: number;
  readonly onTrue?: number;
  readonly onFalse?: number;
  readonly k: number;
}

const returns = (k: number): Instruction => ({ code: answer, k });
const loads = (k: number): Instruction => ({ code: load, k });

/** `block` runs when the call is `number`, and ends with an answer. */
const forCall = (number: number, block: readonly Instruction[]): Instruction[] => [
  { code: jumpEqual, k: number, onFalse: block.length },
  ...block,
];

/** Allows a call when the low word of one argument is in a list. Kernels read no more than that word of these. */
const whenArgument = (index: number, values: readonly number[]): Instruction[] => [
  loads(argumentAt(index)),
  ...values.flatMap((k): Instruction[] => [{ code: jumpEqual, k, onFalse: 1 }, returns(verdict.allow)]),
  returns(verdict.notPermitted),
];

/** Goes on to the next instruction when the argument is in the list, and refuses otherwise. */
const onlyWhenArgument = (index: number, values: readonly number[]): Instruction[] => [
  loads(argumentAt(index)),
  ...values.map((k, at): Instruction => ({ code: jumpEqual, k, onTrue: values.length - at })),
  returns(verdict.notPermitted),
];

/** Which sockets an agent may make. Without egress that is none: what is not allowed here falls through to a refusal. */
type Profile = 'closed' | 'egress';

function sockets(architecture: Architecture): Instruction[] {
  const options = harmlessOptions.flatMap(([level, names]) => forCall(level, whenArgument(2, names)));
  return [
    ...forCall(special.socket[architecture], [
      ...streamSockets.flatMap((values, index) => onlyWhenArgument(index, values)),
      returns(verdict.allow),
    ]),
    ...forCall(special.setsockopt[architecture], [loads(argumentAt(1)), ...options, returns(verdict.notPermitted)]),
    ...Object.values(egressCalls).flatMap((call) => forCall(call[architecture], [returns(verdict.allow)])),
  ];
}

function instructions(architecture: Architecture, profile: Profile): Instruction[] {
  const number = (name: keyof typeof special): number => special[name][architecture];
  return [
    loads(architectureAt),
    { code: jumpEqual, k: architectureToken[architecture], onTrue: 1 },
    returns(verdict.kill),
    loads(numberAt),
    ...(architecture === 'x64' ? [{ code: jumpAtLeast, k: x32, onFalse: 1 }, returns(verdict.kill)] : []),
    // Its flags are behind a pointer, where no filter can see them; C libraries fall back to clone.
    ...forCall(number('clone3'), [returns(verdict.notThere)]),
    ...forCall(number('clone'), [
      loads(argumentAt(0)),
      { code: jumpIfSet, k: namespaceFlags, onFalse: 1 },
      returns(verdict.notPermitted),
      returns(verdict.allow),
    ]),
    ...(profile === 'egress' ? sockets(architecture) : []),
    ...forCall(number('socketpair'), whenArgument(0, [unixFamily])),
    ...forCall(number('ioctl'), whenArgument(1, harmlessIoctls)),
    ...forCall(number('prctl'), whenArgument(0, harmlessPrctls)),
    ...[...allowedCalls(architecture).values()].flatMap((k) => forCall(k, [returns(verdict.allow)])),
    returns(verdict.notPermitted),
  ];
}

/**
 * The seccomp program for this architecture, as the kernel takes it: an allow-list, since a list of what is forbidden
 * would be out of date with the next kernel.
 */
export function seccompProgram(architecture: string, profile: Profile = 'closed'): Buffer {
  if (architecture !== 'x64' && architecture !== 'arm64') {
    const message = `There is no list of system calls for ${architecture}.`;
    throw new AgonError('SANDBOX.DRIVER_UNAVAILABLE', message, { architecture });
  }
  const program = instructions(architecture, profile);
  const bytes = Buffer.alloc(8 * program.length);
  for (const [index, { code, onTrue = 0, onFalse = 0, k }] of program.entries()) {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.writeUInt8(onTrue, 8 * index + 2);
    bytes.writeUInt8(onFalse, 8 * index + 3);
    bytes.writeUInt32LE(k, 8 * index + 4);
  }
  return bytes;
}
