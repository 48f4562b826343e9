/* x86-64 entries of libration.so.
 *
 * dlsym, dlvsym, dlopen, dlmopen: pass a writable copy of the arguments and the caller's return address to a resolver. Either it
 * stores a result, or the call continues by a tail JUMP, so that glibc's __builtin_return_address(0) is still the
 * program's: RTLD_NEXT, $ORIGIN and namespaces still refer to the caller. In assembly, because a compiler makes that
 * jump only when it optimises.
 *
 * cu*, nvml*: one indirect jump through a slot. A slot starts at a stub that gets the target from ration_preload_bind. */

  .text

/* struct RationCall of preload.h: 0 first, 8 second, 16 third argument, 24 caller, 32 result, 40 target */
  .macro RESOLVED label resolver
  .p2align 4
  .type \label, @function
\label:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $48, %rsp
  andq $-16, %rsp
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq 8(%rbp), %rax
  movq %rax, 24(%rsp)
  movq %rsp, %rdi
  call \resolver
  testl %eax, %eax
  movq 0(%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 32(%rsp), %rax
  movq 40(%rsp), %r11
  leave
  .cfi_def_cfa %rsp, 8
  jz 1f
  ret
1:
  jmp *%r11
  .cfi_endproc
  .size \label, . - \label
  .endm

/* .symver renames the label it is applied to, so each version needs its own alias. */
  .macro VERSIONED label name first=GLIBC_2.2.5
  .globl \label\()_old
  .type \label\()_old, @function
  .set \label\()_old, \label
  .symver \label\()_old, \name\()@\first
  .globl \label\()_new
  .type \label\()_new, @function
  .set \label\()_new, \label
  .symver \label\()_new, \name\()@@GLIBC_2.34
  .endm

  .hidden ration_dlsym_entry
  .globl ration_dlsym_entry
  RESOLVED ration_dlsym_entry ration_resolve_dlsym
  VERSIONED ration_dlsym_entry dlsym

  .hidden ration_dlvsym_entry
  .globl ration_dlvsym_entry
  RESOLVED ration_dlvsym_entry ration_resolve_dlvsym
  VERSIONED ration_dlvsym_entry dlvsym

  .hidden ration_dlopen_entry
  .globl ration_dlopen_entry
  RESOLVED ration_dlopen_entry ration_resolve_dlopen
  VERSIONED ration_dlopen_entry dlopen

  .hidden ration_dlmopen_entry
  .globl ration_dlmopen_entry
  RESOLVED ration_dlmopen_entry ration_resolve_dlmopen
  VERSIONED ration_dlmopen_entry dlmopen GLIBC_2.3.4

/* First use: r11 = index of the hook. Preserves every register that can carry an argument. */
  .p2align 4
  .type ration_first_use, @function
ration_first_use:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $192, %rsp
  andq $-16, %rsp
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movaps %xmm0, 64(%rsp)
  movaps %xmm1, 80(%rsp)
  movaps %xmm2, 96(%rsp)
  movaps %xmm3, 112(%rsp)
  movaps %xmm4, 128(%rsp)
  movaps %xmm5, 144(%rsp)
  movaps %xmm6, 160(%rsp)
  movaps %xmm7, 176(%rsp)
  movl %r11d, %edi
  call ration_preload_bind
  movq %rax, %r11
  movq 0(%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movq 48(%rsp), %rax
  movaps 64(%rsp), %xmm0
  movaps 80(%rsp), %xmm1
  movaps 96(%rsp), %xmm2
  movaps 112(%rsp), %xmm3
  movaps 128(%rsp), %xmm4
  movaps 144(%rsp), %xmm5
  movaps 160(%rsp), %xmm6
  movaps 176(%rsp), %xmm7
  leave
  .cfi_def_cfa %rsp, 8
  jmp *%r11
  .cfi_endproc
  .size ration_first_use, . - ration_first_use

/* ration_call_on(end of a stack, function, argument): the frame is found from rbp on both stacks. */
  .p2align 4
  .hidden ration_call_on
  .globl ration_call_on
  .type ration_call_on, @function
ration_call_on:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %rdi, %rsp
  movq %rdx, %rdi
  call *%rsi
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size ration_call_on, . - ration_call_on

/* Of size 0: where a program has a variable of that name, its linker may have it copied from here. */
  .set hook_index, 0
  .macro ENTRY symbol
  .text
  .p2align 4
  .globl \symbol
  .type \symbol, @function
  .hidden ration_entry_\symbol
  .globl ration_entry_\symbol
  .type ration_entry_\symbol, @function
\symbol:
ration_entry_\symbol:
  .cfi_startproc
  endbr64
  jmpq *(ration_slots + 8 * hook_index)(%rip)
  .cfi_endproc
  .size \symbol, 0
  .type first_\symbol, @function
first_\symbol:
  .cfi_startproc
  endbr64
  movl $hook_index, %r11d
  jmp ration_first_use
  .cfi_endproc
  .size first_\symbol, . - first_\symbol
  .data
  .quad first_\symbol
  .set hook_index, hook_index + 1
  .endm

  .data
  .p2align 3
  .hidden ration_slots
  .globl ration_slots
  .type ration_slots, @object
ration_slots:

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) ENTRY symbol
#include "hook_table.inc"
#undef RATION_HOOK
#define RATION_NVML_HOOK(symbol, parameters) ENTRY symbol
#include "hook_table.inc"

  .data
  .size ration_slots, . - ration_slots

  .section .note.GNU-stack, "", @progbits
