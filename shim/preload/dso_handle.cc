// What pthread_atfork(3) names this library by. Of every shared object (Itanium C++ ABI, 3.3.5.3), from the compiler's
// start files, which this library does without. Layer: preload.
extern "C" {
__attribute__((visibility("hidden"))) void *dso_handle __asm__("__dso_handle") = nullptr;
}
