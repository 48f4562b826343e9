// A library that is loaded and unloaded all the time.
extern "C" int coming_and_going() {
  return 1;
}
