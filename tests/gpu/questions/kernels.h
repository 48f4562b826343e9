// The kernels of these programs, as PTX that every driver since CUDA 11 compiles for Volta and later devices.
#pragma once

namespace question {

// spin(words, nanoseconds): sets words[0] to 1, then to 2 as soon as words[1] is set, or the time or 4 * 10^9 cycles
// have passed. fill(to, words, value): to[i] = value + i. copy(to, from, words): to[i] = from[i].
inline constexpr char kKernels[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry spin(.param .u64 words, .param .u64 nanoseconds) {
  .reg .pred %go;
  .reg .b32 %value;
  .reg .b64 %words, %limit, %begin, %now, %first, %cycles;
  ld.param.u64 %words, [words];
  ld.param.u64 %limit, [nanoseconds];
  mov.u64 %begin, %globaltimer;
  mov.u64 %first, %clock64;
  st.volatile.global.u32 [%words], 1;
again:
  ld.volatile.global.u32 %value, [%words+4];
  setp.ne.u32 %go, %value, 0;
  @%go bra done;
  nanosleep.u32 1000;
  mov.u64 %cycles, %clock64;
  sub.u64 %cycles, %cycles, %first;
  setp.gt.u64 %go, %cycles, 4000000000;
  @%go bra done;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.lt.u64 %go, %now, %limit;
  @%go bra again;
done:
  membar.sys;
  st.volatile.global.u32 [%words], 2;
  ret;
}

.visible .entry fill(.param .u64 to, .param .u64 words, .param .u32 value) {
  .reg .pred %out;
  .reg .b32 %block, %threads, %thread, %value;
  .reg .b64 %to, %words, %index, %offset;
  ld.param.u64 %to, [to];
  ld.param.u64 %words, [words];
  ld.param.u32 %value, [value];
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  cvt.u64.u32 %offset, %thread;
  mad.wide.u32 %index, %block, %threads, %offset;
  setp.ge.u64 %out, %index, %words;
  @%out bra done;
  shl.b64 %offset, %index, 2;
  add.u64 %to, %to, %offset;
  cvt.u32.u64 %block, %index;
  add.u32 %value, %value, %block;
  st.global.u32 [%to], %value;
done:
  ret;
}

.visible .entry copy(.param .u64 to, .param .u64 from, .param .u64 words) {
  .reg .pred %out;
  .reg .b32 %block, %threads, %thread, %value;
  .reg .b64 %to, %from, %words, %index, %offset;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %words, [words];
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  cvt.u64.u32 %offset, %thread;
  mad.wide.u32 %index, %block, %threads, %offset;
  setp.ge.u64 %out, %index, %words;
  @%out bra done;
  shl.b64 %offset, %index, 2;
  add.u64 %to, %to, %offset;
  add.u64 %from, %from, %offset;
  ld.volatile.global.u32 %value, [%from];
  st.global.u32 [%to], %value;
done:
  ret;
}
)";

}  // namespace question
