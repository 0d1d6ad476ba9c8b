"""Calls that no job's process may make, with their numbers on x86-64 and on ARM."""

DANGEROUS = """
connect 42 203 accept 43 202 accept4 288 242 sendmsg 46 211 sendmmsg 307 269
ptrace 101 117 process_vm_readv 310 270 process_vm_writev 311 271 pidfd_getfd 438 438 process_madvise 440 440
process_mrelease 448 448 kcmp 312 272 perf_event_open 298 241 add_key 248 217 request_key 249 218 keyctl 250 219
inotify_init1 294 26 inotify_add_watch 254 27 fanotify_init 300 262 fanotify_mark 301 263
unshare 272 97 setns 308 268 clone3 435 435 chroot 161 51 pivot_root 155 41 mount 165 40 umount2 166 39 fsopen 430 430
fsconfig 431 431 fsmount 432 432 fspick 433 433 open_tree 428 428 move_mount 429 429 mount_setattr 442 442
bpf 321 280 userfaultfd 323 282 name_to_handle_at 303 264 open_by_handle_at 304 265
io_uring_setup 425 425 io_uring_enter 426 426 io_uring_register 427 427 io_setup 206 0 io_submit 209 2
init_module 175 105 finit_module 313 273 delete_module 176 106 kexec_load 246 104 kexec_file_load 320 294
reboot 169 142 swapon 167 224 swapoff 168 225 acct 163 89 quotactl 179 60 quotactl_fd 443 443 syslog 103 116
settimeofday 164 170 clock_settime 227 112 adjtimex 159 171 clock_adjtime 305 266 sethostname 170 161
setdomainname 171 162 personality 135 92 vhangup 153 58 lookup_dcookie 212 18 seccomp 317 277 capset 126 91
setuid 105 146 setgid 106 144 setreuid 113 145 setregid 114 143 setresuid 117 147 setresgid 119 149
setfsuid 122 151 setfsgid 123 152 setgroups 116 159
shmget 29 194 shmat 30 196 shmctl 31 195 semget 64 190 semctl 66 191 msgget 68 186 msgctl 71 187 mq_open 240 180
vmsplice 278 75 remap_file_pages 216 234 memfd_secret 447 447 execveat 322 281
iopl 172 - ioperm 173 - modify_ldt 154 - uselib 134 - sysfs 139 - ustat 136 - nfsservctl 180 42
"""
