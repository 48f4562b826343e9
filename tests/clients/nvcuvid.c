/* libnvcuvid.so.1 by its names alone: GStreamer offers no element for CUDA unless a library of the video codecs loads.
 * Every call answers CUDA_ERROR_NOT_SUPPORTED, so that no decoder is offered. Never installed. */
enum { kNotSupported = 801 };

/* Arguments are not read, so none is declared. */
int cuvidCtxLock(void) {
  return kNotSupported;
}
int cuvidCtxLockCreate(void) {
  return kNotSupported;
}
int cuvidCtxLockDestroy(void) {
  return kNotSupported;
}
int cuvidCtxUnlock(void) {
  return kNotSupported;
}
int cuvidCreateDecoder(void) {
  return kNotSupported;
}
int cuvidCreateVideoParser(void) {
  return kNotSupported;
}
int cuvidDecodePicture(void) {
  return kNotSupported;
}
int cuvidDestroyDecoder(void) {
  return kNotSupported;
}
int cuvidDestroyVideoParser(void) {
  return kNotSupported;
}
int cuvidGetDecoderCaps(void) {
  return kNotSupported;
}
int cuvidMapVideoFrame64(void) {
  return kNotSupported;
}
int cuvidParseVideoData(void) {
  return kNotSupported;
}
int cuvidUnmapVideoFrame64(void) {
  return kNotSupported;
}
