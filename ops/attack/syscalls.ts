import { arch } from 'node:process';
import type { Attack } from './attack.js';
import { attacksIn, python } from './common.js';

const attacks = attacksIn(python);

/**
 * System calls that no agent may make, with arguments that do no harm where nothing stops them: they ask, or fail for
 * a reason other than permission. `bad` is an address where nothing is.
 */
const calls: readonly (readonly [name: string, x64: number, arm64: number | undefined, args: string])[] = [
  ['keyctl', 250, 219, '0, -3, 0'],
  ['add_key', 248, 217, 'bad, bad, 0, 0, 0'],
  ['request_key', 249, 218, 'bad, bad, 0, 0'],
  ['bpf', 321, 280, '9999, bad, 8'],
  ['ptrace', 101, 117, '16, 999999, 0, 0'],
  ['process_vm_readv', 310, 270, 'os.getpid(), 0, 0, 0, 0, 0'],
  ['process_vm_writev', 311, 271, 'os.getpid(), 0, 0, 0, 0, 0'],
  ['io_uring_setup', 425, 425, '0, bad'],
  ['io_uring_enter', 426, 426, '-1, 0, 0, 0, 0, 0'],
  ['io_uring_register', 427, 427, '-1, 0, 0, 0'],
  ['perf_event_open', 298, 241, 'bad, 0, -1, -1, 0'],
  ['userfaultfd', 323, 282, '0xffff'],
  ['mount', 165, 40, 'bad, bad, bad, 0, 0'],
  ['umount2', 166, 39, 'bad, 0'],
  ['pivot_root', 155, 41, 'bad, bad'],
  ['chroot', 161, 51, 'bad'],
  ['fsopen', 430, 430, 'bad, 0'],
  ['open_tree', 428, 428, '-100, bad, 0'],
  ['move_mount', 429, 429, '-100, bad, -100, bad, 0'],
  ['unshare', 272, 97, '0'],
  ['setns', 308, 268, '-1, 0'],
  ['clone3', 435, 435, 'bad, 0'],
  ['socket', 41, 198, '1, 1, 0'],
  ['connect', 42, 203, '-1, bad, 0'],
  ['bind', 49, 200, '-1, bad, 0'],
  ['sendmsg', 46, 211, '-1, bad, 0'],
  ['recvmsg', 47, 212, '-1, bad, 0'],
  ['sethostname', 170, 161, 'bad, 1'],
  ['settimeofday', 164, 170, '0, 0'],
  ['clock_settime', 227, 112, '0, bad'],
  ['adjtimex', 159, 171, 'bad'],
  ['init_module', 175, 105, '0, 0, bad'],
  ['finit_module', 313, 273, '-1, bad, 0'],
  ['delete_module', 176, 106, 'bad, 0'],
  ['kexec_load', 246, 104, '0, 0, 0, 0xffff'],
  ['reboot', 169, 142, '0, 0, 0, 0'],
  ['swapon', 167, 224, 'bad, 0'],
  ['swapoff', 168, 225, 'bad'],
  ['acct', 163, 89, 'bad'],
  ['syslog', 103, 116, '10, 0, 0'],
  ['name_to_handle_at', 303, 264, '-1, bad, bad, bad, 0'],
  ['open_by_handle_at', 304, 265, '-1, bad, 0'],
  ['memfd_create', 319, 279, 'name, 0'],
  ['memfd_secret', 447, 447, '0xffff'],
  ['personality', 135, 92, '0xffffffff'],
  ['mknodat', 259, 33, '-100, bad, 0o020600, 0x103'],
  ['pidfd_open', 434, 434, 'os.getpid(), 0'],
  ['pidfd_getfd', 438, 438, '-1, 0, 0'],
  ['kcmp', 312, 272, 'os.getpid(), os.getpid(), 0, 1, 1'],
  ['seccomp', 317, 277, '99, 0, 0'],
  ['fanotify_init', 300, 262, '0xffffffff, 0'],
  ['setuid', 105, 146, '0'],
  ['setgroups', 116, 159, '0, 0'],
  ['capset', 126, 91, 'bad, bad'],
  ['setpriority', 141, 140, '0, 0, 0'],
  ['mbind', 237, 235, '0, 0, 0, 0, 0, 0'],
  ['move_pages', 279, 239, '0, 0, 0, 0, 0, 0'],
  ['shmget', 29, 194, '0, 4096, 0o600'],
  ['msgget', 68, 186, '0, 0o600'],
  ['semget', 64, 190, '0, 1, 0o600'],
  ['mq_open', 240, 180, 'bad, 0, 0, 0'],
  ['quotactl', 179, 60, '0, 0, 0, 0'],
  ['iopl', 172, undefined, '0'],
  ['ioperm', 173, undefined, '0, 1, 0'],
  ['modify_ldt', 154, undefined, '0, 0, 0'],
];

/** Refused by their arguments: a terminal's input, another filter, new namespaces, a socket pair that is no pipe. */
const argued: readonly (readonly [name: string, x64: number, arm64: number, args: string])[] = [
  ['ioctl to type into a terminal', 16, 29, '1, 0x5412, name'],
  ['prctl to set a filter', 157, 167, '22, 2, bad, 0, 0'],
  ['prctl to keep capabilities', 157, 167, '8, 0, 0, 0, 0'],
  ['clone with a user namespace', 56, 220, '0x10000000 | 0x10000, 0, 0, 0, 0'],
  ['clone with a network namespace', 56, 220, '0x40000000 | 0x10000, 0, 0, 0, 0'],
  ['a pair of network sockets', 53, 199, '2, 1, 0, bad'],
];

/** EPERM is the filter's answer and ENOSYS that of a kernel without the call, or of the filter where it says so. */
const body = (number: number, args: string): string => `import errno
libc = ctypes.CDLL(None, use_errno=True)
bad, name = ctypes.c_void_p(8), ctypes.c_char_p(b"x")
wide = [value if not isinstance(value, int) else ctypes.c_long(value) for value in (${args},)]
result = libc.syscall(ctypes.c_long(${number}), *wide)
code = ctypes.get_errno() if result == -1 else 0
if code == errno.ENOSYS: return {"absent": True}
return code != errno.EPERM`;

const bare = [...calls, ...argued].flatMap(([name, x64, arm64, args]) => {
  const number = arch === 'arm64' ? arm64 : x64;
  return number === undefined ? [] : attacks({ [`syscall ${name}`]: body(number, args) });
});

const ofIntel = attacks({
  'system calls of another architecture': [
    `import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b814000000cd80c3"))
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
return call() == os.getpid()`,
    { stopped: ['crash'] },
  ],
  'nested user namespace': 'return ctypes.CDLL(None).unshare(0x10000000) == 0',
  'nested mount namespace': 'return ctypes.CDLL(None).unshare(0x20000) == 0',
  'nested network namespace': 'return ctypes.CDLL(None).unshare(0x40000000) == 0',
});

/** An attack that reaches the kernel's own code for a call, even to be told that its arguments are bad, has worked. */
export const syscallAttacks: readonly Attack[] = [...bare, ...(arch === 'x64' ? ofIntel : [])];
