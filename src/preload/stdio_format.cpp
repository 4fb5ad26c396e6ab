// Streams and descriptors: formatted text. The variadic functions are passed on to those that take a va_list.
#include "preload/format.hpp"
#include "preload/streams.hpp"

using namespace pario::preload;

namespace {

template <class Real>
int printing(Symbol symbol, std::FILE* stream, Real real) {
  return stream_transfer({.symbol = symbol, .stream = stream, .formatted = true}, real, [](int length) { return std::int64_t{length}; });
}

template <class Real>
int printing_to(Symbol symbol, int descriptor, Real real) {
  Transfer what{symbol, descriptor, 0};
  return transfer(what, [&] {
    const int length = real();
    if (length > 0) what.asked = static_cast<std::uint64_t>(length);
    return length;
  });
}

/// How far a stream was read, as long as its buffer was filled once at most in between.
class Consumption {
 public:
  explicit Consumption(std::FILE* stream) : stream_(stream), place_(stream->_IO_read_ptr), end_(stream->_IO_read_end) {}
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
int scanning(Symbol symbol, std::FILE* stream, Real real) {
  const Consumption consumption(stream);
  return stream_transfer({.symbol = symbol, .stream = stream, .formatted = true}, real, [&](int) { return consumption.bytes(); });
}

}  // namespace

VFORMAT(printing, vprintf, stdout, (const char* format), (format))
VFORMAT(printing, vfprintf, stream, (std::FILE * stream, const char* format), (stream, format))
VFORMAT(printing, __vprintf_chk, stdout, (int flag, const char* format), (flag, format))
VFORMAT(printing, __vfprintf_chk, stream, (std::FILE * stream, int flag, const char* format), (stream, flag, format))
VFORMAT(printing_to, vdprintf, fd, (int fd, const char* format), (fd, format))
VFORMAT(printing_to, __vdprintf_chk, fd, (int fd, int flag, const char* format), (fd, flag, format))
FORMAT(printing, printf, vprintf, stdout, (const char* format), (format))
FORMAT(printing, fprintf, vfprintf, stream, (std::FILE * stream, const char* format), (stream, format))
FORMAT(printing, __printf_chk, __vprintf_chk, stdout, (int flag, const char* format), (flag, format))
FORMAT(printing, __fprintf_chk, __vfprintf_chk, stream, (std::FILE * stream, int flag, const char* format), (stream, flag, format))
FORMAT(printing_to, dprintf, vdprintf, fd, (int fd, const char* format), (fd, format))
FORMAT(printing_to, __dprintf_chk, __vdprintf_chk, fd, (int fd, int flag, const char* format), (fd, flag, format))

#define SCAN(prefix)                                                                                     \
  VFORMAT(scanning, prefix##vscanf, stdin, (const char* format), (format))                               \
  VFORMAT(scanning, prefix##vfscanf, stream, (std::FILE * stream, const char* format), (stream, format)) \
  FORMAT(scanning, prefix##scanf, prefix##vscanf, stdin, (const char* format), (format))                 \
  FORMAT(scanning, prefix##fscanf, prefix##vfscanf, stream, (std::FILE * stream, const char* format), (stream, format))

SCAN()
SCAN(__isoc99_)
SCAN(__isoc23_)
