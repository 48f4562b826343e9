/* aarch64 entries of libration.so; the same contract as trampolines_x86_64.S, which gives the reasons.
 * Indirect tail jumps go through x16, from which BTI allows a landing on `bti c`. */

  .text

/* struct RationCall of preload.h: 0 first, 8 second, 16 third argument, 24 caller, 32 result, 40 target */
  .macro RESOLVED label resolver
  .p2align 4
  .type \label, %function
\label:
  .cfi_startproc
  bti c
  stp x29, x30, [sp, #-64]!
  .cfi_def_cfa_offset 64
  .cfi_offset x29, -64
  .cfi_offset x30, -56
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x30, [sp, #32]
  add x0, sp, #16
  bl \resolver
  mov w9, w0
  ldp x0, x1, [sp, #16]
  ldr x2, [sp, #32]
  ldr x10, [sp, #48]
  ldr x16, [sp, #56]
  ldp x29, x30, [sp], #64
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  cbz w9, 1f
  mov x0, x10
  ret
1:
  br x16
  .cfi_endproc
  .size \label, . - \label
  .endm

  .macro VERSIONED label name first=GLIBC_2.17
  .globl \label\()_old
  .type \label\()_old, %function
  .set \label\()_old, \label
  .symver \label\()_old, \name\()@\first
  .globl \label\()_new
  .type \label\()_new, %function
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
  VERSIONED ration_dlmopen_entry dlmopen GLIBC_2.17

/* First use: x17 = index of the hook. Preserves x0-x8 and the vector argument registers. */
  .p2align 4
  .type ration_first_use, %function
ration_first_use:
  .cfi_startproc
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset x29, -224
  .cfi_offset x30, -216
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov w0, w17
  bl ration_preload_bind
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x8, [sp, #80]
  ldp q0, q1, [sp, #96]
  ldp q2, q3, [sp, #128]
  ldp q4, q5, [sp, #160]
  ldp q6, q7, [sp, #192]
  ldp x29, x30, [sp], #224
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  br x16
  .cfi_endproc
  .size ration_first_use, . - ration_first_use

/* ration_call_on(end of a stack, function, argument) */
  .p2align 4
  .hidden ration_call_on
  .globl ration_call_on
  .type ration_call_on, %function
ration_call_on:
  .cfi_startproc
  bti c
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, sp
  .cfi_def_cfa_register x29
  mov sp, x0
  mov x0, x2
  blr x1
  mov sp, x29
  ldp x29, x30, [sp], #16
  .cfi_def_cfa sp, 0
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size ration_call_on, . - ration_call_on

  .set hook_index, 0
  .macro ENTRY symbol
  .text
  .p2align 4
  .globl \symbol
  .type \symbol, %function
  .hidden ration_entry_\symbol
  .globl ration_entry_\symbol
  .type ration_entry_\symbol, %function
\symbol:
ration_entry_\symbol:
  .cfi_startproc
  bti c
  adrp x16, ration_slots + 8 * hook_index
  ldr x16, [x16, :lo12:ration_slots + 8 * hook_index]
  br x16
  .cfi_endproc
  .size \symbol, 0
  .type first_\symbol, %function
first_\symbol:
  .cfi_startproc
  bti c
  mov w17, #hook_index
  b ration_first_use
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
  .type ration_slots, %object
ration_slots:

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) ENTRY symbol
#include "hook_table.inc"
#undef RATION_HOOK
#define RATION_NVML_HOOK(symbol, parameters) ENTRY symbol
#include "hook_table.inc"

  .data
  .size ration_slots, . - ration_slots

  .section .note.GNU-stack, "", %progbits
