// Wrappers of calls that format text, for streams and descriptors. Variadic functions call the
// functions with a va_list.
#include "observe/preload/format.hpp"
#include "observe/preload/streams.hpp"

using namespace pario::preload;

namespace {

template <class Real>
int trace_print(Symbol symbol, std::FILE* stream, Real real) {
  return trace_stream_transfer({.symbol = symbol, .stream = stream, .formatted = true}, real,
                               [](int length) { return std::int64_t{length}; });
}

template <class Real>
int trace_print_to(Symbol symbol, int descriptor, Real real) {
  Transfer call{symbol, descriptor, 0};
  return trace_transfer(call, [&] {
    const int length = real();
    if (length > 0) call.asked = static_cast<std::uint64_t>(length);
    return length;
  });
}

/// The bytes that a call reads from a stream, if it fills the buffer at most once.
class Consumption {
 public:
  explicit Consumption(std::FILE* stream)
      : stream_(stream), place_(stream->_IO_read_ptr), end_(stream->_IO_read_end) {}
  std::int64_t bytes() const {
    const char* place = stream_->_IO_read_ptr;
    if (stream_->_IO_read_end == end_ && place >= place_) return place - place_;
    return (end_ - place_) + (place - stream_->_IO_read_base);
  }

 private:
  std::FILE* stream_;
  const char* place_;
  const char* end_;
};

template <class Real>
int trace_scan(Symbol symbol, std::FILE* stream, Real real) {
  const Consumption consumption(stream);
  return trace_stream_transfer({.symbol = symbol, .stream = stream, .formatted = true}, real,
                               [&](int) { return consumption.bytes(); });
}

}  // namespace

VFORMAT(trace_print, vprintf, stdout, (const char* format), (format))
VFORMAT(trace_print, vfprintf, stream, (std::FILE * stream, const char* format), (stream, format))
VFORMAT(trace_print, __vprintf_chk, stdout, (int flag, const char* format), (flag, format))
VFORMAT(trace_print, __vfprintf_chk, stream, (std::FILE * stream, int flag, const char* format),
        (stream, flag, format))
VFORMAT(trace_print_to, vdprintf, fd, (int fd, const char* format), (fd, format))
VFORMAT(trace_print_to, __vdprintf_chk, fd, (int fd, int flag, const char* format),
        (fd, flag, format))
FORMAT(trace_print, printf, vprintf, stdout, (const char* format), (format))
FORMAT(trace_print, fprintf, vfprintf, stream, (std::FILE * stream, const char* format),
       (stream, format))
FORMAT(trace_print, __printf_chk, __vprintf_chk, stdout, (int flag, const char* format),
       (flag, format))
FORMAT(trace_print, __fprintf_chk, __vfprintf_chk, stream,
       (std::FILE * stream, int flag, const char* format), (stream, flag, format))
FORMAT(trace_print_to, dprintf, vdprintf, fd, (int fd, const char* format), (fd, format))
FORMAT(trace_print_to, __dprintf_chk, __vdprintf_chk, fd, (int fd, int flag, const char* format),
       (fd, flag, format))

#define SCAN(prefix)                                                                       \
  VFORMAT(trace_scan, prefix##vscanf, stdin, (const char* format), (format))               \
  VFORMAT(trace_scan, prefix##vfscanf, stream, (std::FILE * stream, const char* format),   \
          (stream, format))                                                                \
  FORMAT(trace_scan, prefix##scanf, prefix##vscanf, stdin, (const char* format), (format)) \
  FORMAT(trace_scan, prefix##fscanf, prefix##vfscanf, stream,                              \
         (std::FILE * stream, const char* format), (stream, format))

SCAN()
SCAN(__isoc99_)
SCAN(__isoc23_)
