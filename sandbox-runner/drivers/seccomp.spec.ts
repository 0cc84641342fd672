import { describe, expect, it } from 'vitest';
import { seccompProgram, verdict } from './seccomp.js';
import { allowedCalls, egressCalls } from './syscalls.js';

const tokens = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;

/** The kernel's side, in a few lines: runs the program on one call. */
function judge(program: Buffer, call: { arch: number; nr: number; args?: readonly number[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.nr, 0);
  data.writeUInt32LE(call.arch, 4);
  for (const [index, value] of (call.args ?? []).entries()) data.writeUInt32LE(value, 16 + 8 * index);
  let loaded = 0;
  for (let at = 0; ; at += 1) {
    const code = program.readUInt16LE(8 * at);
    const k = program.readUInt32LE(8 * at + 4);
    const jump = (taken: boolean) => program.readUInt8(8 * at + (taken ? 2 : 3));
    if (code === 0x06) return k;
    if (code === 0x20) loaded = data.readUInt32LE(k);
    else if (code === 0x15) at += jump(loaded === k);
    else if (code === 0x35) at += jump(loaded >= k);
    else if (code === 0x45) at += jump((loaded & k) !== 0);
    else throw new Error(`instruction ${code}`);
  }
}

const denied = {
  x64: {
    ptrace: 101,
    mount: 165,
    umount2: 166,
    pivot_root: 155,
    chroot: 161,
    unshare: 272,
    setns: 308,
    keyctl: 250,
    add_key: 248,
    request_key: 249,
    bpf: 321,
    perf_event_open: 298,
    userfaultfd: 323,
    io_uring_setup: 425,
    io_uring_enter: 426,
    socket: 41,
    connect: 42,
    bind: 49,
    listen: 50,
    sendmsg: 46,
    recvmsg: 47,
    init_module: 175,
    kexec_load: 246,
    process_vm_readv: 310,
    process_vm_writev: 311,
    pidfd_getfd: 438,
    open_by_handle_at: 304,
    memfd_create: 319,
    personality: 135,
    mknod: 133,
    reboot: 169,
    swapon: 167,
    settimeofday: 164,
    seccomp: 317,
  },
  arm64: {
    ptrace: 117,
    mount: 40,
    umount2: 39,
    pivot_root: 41,
    chroot: 51,
    unshare: 97,
    setns: 268,
    keyctl: 219,
    add_key: 217,
    request_key: 218,
    bpf: 280,
    perf_event_open: 241,
    userfaultfd: 282,
    io_uring_setup: 425,
    socket: 198,
    connect: 203,
    bind: 200,
    sendmsg: 211,
    process_vm_readv: 270,
    open_by_handle_at: 265,
  },
} as const;

describe.each(['x64', 'arm64'] as const)('the seccomp program for %s', (architecture) => {
  const program = seccompProgram(architecture);
  const arch = tokens[architecture];
  const numbers =
    architecture === 'x64'
      ? { clone: 56, socketpair: 53, ioctl: 16, prctl: 157 }
      : { clone: 220, socketpair: 199, ioctl: 29, prctl: 167 };

  it('is one that the kernel accepts: whole instructions, jumps forward and inside, an answer at the end', () => {
    const count = program.length / 8;
    expect(Number.isInteger(count) && count < 4096).toBe(true);
    for (let at = 0; at < count; at += 1) {
      expect(at + 1 + Math.max(program[8 * at + 2]!, program[8 * at + 3]!)).toBeLessThanOrEqual(count);
    }
    expect(program.readUInt16LE(program.length - 8)).toBe(0x06);
  });

  it('allows what is on the list, and nothing by default', () => {
    for (const nr of allowedCalls(architecture).values()) expect(judge(program, { arch, nr })).toBe(verdict.allow);
    expect(judge(program, { arch, nr: 9_999 })).toBe(verdict.notPermitted);
  });

  it.each(Object.entries(denied[architecture]))('denies %s', (_name, nr) => {
    expect(judge(program, { arch, nr })).toBe(verdict.notPermitted);
  });

  it('kills a caller of another architecture', () => {
    for (const other of [0x4000_0003, 0x4000_0028, tokens[architecture === 'x64' ? 'arm64' : 'x64']]) {
      expect(judge(program, { arch: other, nr: 0 })).toBe(verdict.kill);
    }
  });

  it('lets threads and forks through, and no clone with a namespace', () => {
    expect(judge(program, { arch, nr: numbers.clone, args: [0x3d0f00] })).toBe(verdict.allow);
    expect(judge(program, { arch, nr: numbers.clone, args: [17] })).toBe(verdict.allow);
    for (const flag of [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]) {
      expect(judge(program, { arch, nr: numbers.clone, args: [17 | flag] })).toBe(verdict.notPermitted);
    }
    expect(judge(program, { arch, nr: 435 })).toBe(verdict.notThere);
  });

  it('looks at arguments where the call alone says too little', () => {
    expect(judge(program, { arch, nr: numbers.socketpair, args: [1] })).toBe(verdict.allow);
    expect(judge(program, { arch, nr: numbers.socketpair, args: [2] })).toBe(verdict.notPermitted);
    expect(judge(program, { arch, nr: numbers.ioctl, args: [0, 0x5401] })).toBe(verdict.allow);
    expect(judge(program, { arch, nr: numbers.ioctl, args: [0, 0x5412] })).toBe(verdict.notPermitted);
    expect(judge(program, { arch, nr: numbers.prctl, args: [15] })).toBe(verdict.allow);
    expect(judge(program, { arch, nr: numbers.prctl, args: [22] })).toBe(verdict.notPermitted);
  });
});

describe.each(['x64', 'arm64'] as const)('the seccomp program with egress for %s', (architecture) => {
  const program = seccompProgram(architecture, 'egress');
  const closed = seccompProgram(architecture);
  const arch = tokens[architecture];
  const numbers = architecture === 'x64' ? { socket: 41, setsockopt: 54 } : { socket: 198, setsockopt: 208 };

  it('allows streams of the loopback device and of paths, and no other socket', () => {
    for (const family of [1, 2, 10]) {
      for (const kind of [1, 0x801, 0x8_0001, 0x8_0801]) {
        for (const protocol of [0, 6]) {
          const call = { arch, nr: numbers.socket, args: [family, kind, protocol] };
          expect([judge(program, call), judge(closed, call)]).toEqual([verdict.allow, verdict.notPermitted]);
        }
      }
    }
    // Datagrams, raw and packet sockets, netlink, vsock, crypto, bluetooth, and streams of other protocols.
    for (const args of [
      [2, 2, 0],
      [2, 3, 1],
      [10, 2, 17],
      [1, 2, 0],
      [1, 5, 0],
      [17, 3, 3],
      [16, 3, 0],
      [16, 1, 0],
      [40, 1, 0],
    ]) {
      expect(judge(program, { arch, nr: numbers.socket, args }), String(args)).toBe(verdict.notPermitted);
    }
    for (const args of [
      [38, 5, 0],
      [31, 1, 0],
      [2, 1, 132],
      [2, 1, 262],
      [0, 1, 0],
      [2, 0x8_0802, 0],
    ]) {
      expect(judge(program, { arch, nr: numbers.socket, args }), String(args)).toBe(verdict.notPermitted);
    }
  });

  it('adds what a stream takes, and nothing else that is denied', () => {
    for (const call of Object.values(egressCalls)) {
      const nr = call[architecture];
      expect([judge(program, { arch, nr }), judge(closed, { arch, nr })]).toEqual([
        verdict.allow,
        verdict.notPermitted,
      ]);
    }
    const opened = new Set<number>([numbers.socket, ...Object.values(egressCalls).map((call) => call[architecture])]);
    for (const nr of Object.values(denied[architecture]).filter((each) => !opened.has(each))) {
      expect(judge(program, { arch, nr })).toBe(verdict.notPermitted);
    }
    for (let nr = 0; nr < 600; nr += 1) {
      if (opened.has(nr) || nr === numbers.setsockopt) continue;
      expect(judge(program, { arch, nr })).toBe(judge(closed, { arch, nr }));
    }
  });

  it('lets harmless options be set, and no filter attached', () => {
    const set = (level: number, name: number) =>
      judge(program, { arch, nr: numbers.setsockopt, args: [3, level, name] });
    for (const [level, name] of [
      [1, 2],
      [1, 9],
      [6, 1],
      [41, 26],
    ] as const)
      expect(set(level, name)).toBe(verdict.allow);
    for (const [level, name] of [
      [1, 26],
      [1, 50],
      [1, 25],
      [6, 31],
      [0, 35],
      [41, 16],
      [263, 1],
    ] as const) {
      expect(set(level, name), `${level} ${name}`).toBe(verdict.notPermitted);
    }
  });
});

it('kills a caller that uses the x32 numbers', () => {
  expect(judge(seccompProgram('x64'), { arch: tokens.x64, nr: 0x4000_0000 })).toBe(verdict.kill);
});

it('refuses an architecture that it has no list for', () => {
  expect(() => seccompProgram('riscv64')).toThrow(/no list of system calls/);
});
