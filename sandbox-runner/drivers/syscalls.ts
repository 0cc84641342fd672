/**
 * Every system call that an agent may make, each with its number on x86_64 and on arm64, which lacks some of the older
 * ones. What is not here does not exist for an agent: keys, BPF, tracing, io_uring, performance counters, mounts,
 * namespaces, modules, clocks to set, sockets that lead anywhere, and whatever a newer kernel may bring.
 */
const table = [
  // Files: every path is inside the sandbox, most of it read-only.
  `read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70 open:2:-
   openat:257:56 close:3:57 close_range:436:436 lseek:8:62 stat:4:- fstat:5:80 lstat:6:- newfstatat:262:79
   statx:332:291 access:21:- faccessat:269:48 faccessat2:439:439 readlink:89:- readlinkat:267:78 getcwd:79:17
   chdir:80:49 fchdir:81:50 getdents:78:- getdents64:217:61 dup:32:23 dup2:33:- dup3:292:24 pipe:22:- pipe2:293:59
   fcntl:72:25 flock:73:32 fsync:74:82 fdatasync:75:83 truncate:76:45 ftruncate:77:46 fallocate:285:47
   fadvise64:221:223 statfs:137:43 fstatfs:138:44 rename:82:- renameat:264:38 renameat2:316:276 mkdir:83:-
   mkdirat:258:34 rmdir:84:- unlink:87:- unlinkat:263:35 link:86:- linkat:265:37 symlink:88:- symlinkat:266:36
   chmod:90:- fchmod:91:52 fchmodat:268:53 chown:92:- fchown:93:55 lchown:94:- fchownat:260:54 umask:95:166
   utimensat:280:88 utime:132:- utimes:235:- futimesat:261:- sendfile:40:71 copy_file_range:326:285 splice:275:76
   tee:276:77 readahead:187:213 sync_file_range:277:84`,
  // Memory.
  `mmap:9:222 munmap:11:215 mprotect:10:226 mremap:25:216 madvise:28:233 brk:12:214 msync:26:227 mincore:27:232
   mlock:149:228 munlock:150:229 membarrier:324:283`,
  // Waiting.
  `poll:7:- ppoll:271:73 select:23:- pselect6:270:72 epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21
   epoll_wait:232:- epoll_pwait:281:22 epoll_pwait2:441:441 eventfd:284:- eventfd2:290:19 timerfd_create:283:85
   timerfd_settime:286:86 timerfd_gettime:287:87 signalfd:282:- signalfd4:289:74 inotify_init1:294:26
   inotify_add_watch:254:27 inotify_rm_watch:255:28 nanosleep:35:101 clock_nanosleep:230:115 pause:34:-
   restart_syscall:219:128`,
  // Processes and threads: the pid namespace and the pids limit hold them.
  `fork:57:- vfork:58:- execve:59:221 exit:60:93 exit_group:231:94 wait4:61:260 waitid:247:95 kill:62:129
   tkill:200:130 tgkill:234:131 futex:202:98 set_robust_list:273:99 get_robust_list:274:100 set_tid_address:218:96
   rseq:334:293 arch_prctl:158:- sched_yield:24:124 sched_getaffinity:204:123 sched_getparam:143:121
   sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126 getpriority:140:141
   gettid:186:178 getpid:39:172 getppid:110:173 getpgid:121:155 getpgrp:111:- getsid:124:156 setpgid:109:154
   setsid:112:157 prlimit64:302:261 getrlimit:97:163 setrlimit:160:164 getrusage:98:165 times:100:153`,
  // Signals.
  `rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigpending:127:136 rt_sigsuspend:130:133
   rt_sigtimedwait:128:137 rt_sigqueueinfo:129:138 sigaltstack:131:132 alarm:37:- getitimer:36:102 setitimer:38:103
   timer_create:222:107 timer_settime:223:110 timer_gettime:224:108 timer_delete:226:111 timer_getoverrun:225:109`,
  // Who, when and how much.
  `getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148 getresgid:120:150
   getgroups:115:158 capget:125:90 uname:63:160 sysinfo:99:179 getcpu:309:168 time:201:- gettimeofday:96:169
   clock_gettime:228:113 clock_getres:229:114 getrandom:318:278`,
  // What a pair of connected sockets needs; no socket can be made that leads anywhere.
  `sendto:44:206 recvfrom:45:207 shutdown:48:210 getsockopt:55:209 setsockopt:54:208 getsockname:51:204
   getpeername:52:205`,
] as const;

export type Architecture = 'x64' | 'arm64';

/** Judged by their arguments, or answered in a way of their own, by the program itself. */
export const special = {
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  socketpair: { x64: 53, arm64: 199 },
  ioctl: { x64: 16, arm64: 29 },
  prctl: { x64: 157, arm64: 167 },
  socket: { x64: 41, arm64: 198 },
  setsockopt: { x64: 54, arm64: 208 },
} as const;

/** What a stream to the loopback device takes besides, for agents that were granted egress. */
export const egressCalls = {
  connect: { x64: 42, arm64: 203 },
  bind: { x64: 49, arm64: 200 },
  listen: { x64: 50, arm64: 201 },
  accept: { x64: 43, arm64: 202 },
  accept4: { x64: 288, arm64: 242 },
} as const;

/** The numbers of the calls that are allowed whatever their arguments. */
export function allowedCalls(architecture: Architecture): ReadonlyMap<string, number> {
  const entries = table.flatMap((group) => group.split(/\s+/)).map((entry) => entry.split(':'));
  return new Map(
    entries.flatMap(([name = '', x64, arm64]): [string, number][] => {
      const number = architecture === 'x64' ? x64 : arm64;
      return number === undefined || number === '-' ? [] : [[name, Number(number)]];
    }),
  );
}
