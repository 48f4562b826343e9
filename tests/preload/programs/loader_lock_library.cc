// A library whose constructor uses CUDA, with the loader's lock held. See loader_lock.cc.
extern "C" void while_loading();

__attribute__((constructor)) static void at_start() {
  while_loading();
}
