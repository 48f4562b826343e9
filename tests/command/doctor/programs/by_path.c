/* Linked with a libcuda.so.1 that only its own folder has. */
int cuInit(unsigned flags);

int main(void) {
  return cuInit(0);
}
