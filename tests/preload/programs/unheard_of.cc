// Exports of a driver that is newer than the catalogue, for look-ups by dlsym: cuMemUnheardOf000 to cuMemUnheardOf999,
// one that has nothing to do with memory, and names that are not of the form of a driver's.

#define UNHEARD_OF(name)                                         \
  extern "C" __attribute__((visibility("default"))) int name() { \
    return 801;                                                  \
  }                                                              \
  static_assert(true)
#define UNHEARD_OF_10(name) \
  UNHEARD_OF(name##0);      \
  UNHEARD_OF(name##1);      \
  UNHEARD_OF(name##2);      \
  UNHEARD_OF(name##3);      \
  UNHEARD_OF(name##4);      \
  UNHEARD_OF(name##5);      \
  UNHEARD_OF(name##6);      \
  UNHEARD_OF(name##7);      \
  UNHEARD_OF(name##8);      \
  UNHEARD_OF(name##9)
#define UNHEARD_OF_100(name) \
  UNHEARD_OF_10(name##0);    \
  UNHEARD_OF_10(name##1);    \
  UNHEARD_OF_10(name##2);    \
  UNHEARD_OF_10(name##3);    \
  UNHEARD_OF_10(name##4);    \
  UNHEARD_OF_10(name##5);    \
  UNHEARD_OF_10(name##6);    \
  UNHEARD_OF_10(name##7);    \
  UNHEARD_OF_10(name##8);    \
  UNHEARD_OF_10(name##9)

UNHEARD_OF_100(cuMemUnheardOf0);
UNHEARD_OF_100(cuMemUnheardOf1);
UNHEARD_OF_100(cuMemUnheardOf2);
UNHEARD_OF_100(cuMemUnheardOf3);
UNHEARD_OF_100(cuMemUnheardOf4);
UNHEARD_OF_100(cuMemUnheardOf5);
UNHEARD_OF_100(cuMemUnheardOf6);
UNHEARD_OF_100(cuMemUnheardOf7);
UNHEARD_OF_100(cuMemUnheardOf8);
UNHEARD_OF_100(cuMemUnheardOf9);

UNHEARD_OF(cuDeviceUnheardOf);
// 100 and 101 characters.
UNHEARD_OF(cuMemUnheardOf_a234567890123456789012345678901234567890123456789012345678901234567890123456789012345);
UNHEARD_OF(cuMemUnheardOf_b2345678901234567890123456789012345678901234567890123456789012345678901234567890123456);
UNHEARD_OF(cudaUnheardOf);
UNHEARD_OF(cu_UnheardOf);
