// The wrapper of vfork. It cannot be a function: the child runs on its parent's stack and would
// overwrite the frame through which the parent returns. The wrapper is therefore the system call
// itself, with the return address in a register.
//
// The child shares all memory of its parent. It marks the thread, and wrappers then only pass calls
// on, so that the parent's tables do not change. The parent runs again when the child has executed
// another program or ended, and clears the mark.
#include <unistd.h>

#include <cerrno>

#include "layers/buffering/buffering.hpp"
#include "layers/handles/handles.hpp"
#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace buffering = pario::buffering;
namespace handles = pario::handles;

extern "C" [[gnu::visibility("hidden"), gnu::used]] void pario_before_vfork() {
  handles::close_all_kept();
  if (buffering::is_active()) buffering::stop_buffering_inherited();
  const std::uint64_t now = pario::trace::ticks();
  if (active()) in_tracer([&] { count_alone(Symbol::vfork, {now, now}, false); });
}

#if defined(__x86_64__)

// The return address stays in rdi, the address of the mark in rsi, and its previous value in edx (a
// child may vfork again); the kernel preserves all three. The child jumps instead of returning,
// because the shadow stack is shared, too, and its entry belongs to the parent.
asm(R"(
  .text
  .globl vfork
  .type vfork, @function
  .p2align 4
vfork:
  endbr64
  pushq %rbp
  movq %rsp, %rbp
  call pario_before_vfork
  popq %rbp
  movq pario_in_vfork_child@gottpoff(%rip), %rsi
  movl %fs:(%rsi), %edx
  popq %rdi
  movl $58, %eax
  syscall
  testl %eax, %eax
  jz 1f
  movl %edx, %fs:(%rsi)
  pushq %rdi
  cmpl $-4095, %eax
  jae 2f
  ret
1:
  movl $1, %fs:(%rsi)
  jmp *%rdi
2:
  negl %eax
  movl %eax, %edi
  subq $8, %rsp
  call pario_set_errno
  addq $8, %rsp
  movl $-1, %eax
  ret
  .size vfork, .-vfork
)");

#elif defined(__aarch64__)

// clone(CLONE_VM | CLONE_VFORK | SIGCHLD, 0). The return address stays in x30; during the count it
// is in a frame that ends before the system call.
asm(R"(
  .text
  .globl vfork
  .type vfork, %function
  .p2align 4
vfork:
  hint #34
  stp x29, x30, [sp, -16]!
  mov x29, sp
  bl pario_before_vfork
  ldp x29, x30, [sp], 16
  mrs x2, tpidr_el0
  adrp x3, :gottprel:pario_in_vfork_child
  ldr x3, [x3, :gottprel_lo12:pario_in_vfork_child]
  ldr w4, [x2, x3]
  mov x0, #0x4111
  mov x1, #0
  mov x8, #220
  svc #0
  cmp x0, #0
  csinc w4, w4, wzr, ne
  str w4, [x2, x3]
  b.lt 1f
  ret
1:
  neg w0, w0
  stp x29, x30, [sp, -16]!
  bl pario_set_errno
  ldp x29, x30, [sp], 16
  mov w0, #-1
  ret
  .size vfork, .-vfork
)");

#else

// Other processors: the child gets its own memory, which the standard allows.
PARIO_WRAP(pid_t, vfork, void) { return fork(); }

#endif

extern "C" [[gnu::visibility("hidden"), gnu::used]] void pario_set_errno(int error) {
  errno = error;
}
