// A linked library fills the device by RTLD_NEXT (deep_bound_library.cc).
extern "C" int fill_next();

int main() {
  return fill_next();
}
