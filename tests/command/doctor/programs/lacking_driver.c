/* A libcuda.so.1 of which a limit cannot make anything: it starts, and has no memory functions. */
int cuInit(unsigned flags) {
  return (int)flags;
}
