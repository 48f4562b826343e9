/* A library that has only a name. */
int ration_test_framework(void);
int ration_test_framework(void) {
  return 0;
}
