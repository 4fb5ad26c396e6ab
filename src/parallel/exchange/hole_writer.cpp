#include "parallel/exchange/hole_writer.hpp"

namespace pario::exchange {

Counters& Counters::operator+=(const Counters& other) {
#define PARIO_TIMER(member, name) member += other.member;
#define PARIO_COUNTER(name) name += other.name;
#define PARIO_AVERAGE(name, sum, count)
#include "parallel/exchange/counters.def"
#undef PARIO_TIMER
#undef PARIO_COUNTER
#undef PARIO_AVERAGE
  return *this;
}

base::Status write_counted(WindowFile& file, std::uint64_t offset, std::span<const std::byte> data,
                           Counters& counters) {
  const Timer timer(counters.file_ns);
  base::Status status = file.write(offset, data);
  if (status.ok()) counters.add_write(base::Extent::at(offset, data.size()), file.unit());
  return status;
}

base::Result<std::uint64_t> read_counted(WindowFile& file, std::uint64_t offset,
                                         std::span<std::byte> data, Counters& counters) {
  const Timer timer(counters.file_ns);
  base::Result<std::uint64_t> count = file.read(offset, data);
  if (count.ok()) counters.add_read(*count);
  return count;
}

HoleWriter::~HoleWriter() {
  if (is_permitted_) file_.end_modify(hull_);
}

base::Status HoleWriter::begin(base::Extent hull, std::byte* old) {
  hull_ = hull;
  if (base::Status status = file_.begin_modify(hull); !status.ok()) return status;
  is_permitted_ = true;
  const auto count = read_counted(file_, hull.begin, {old, hull.length()}, counters_);
  if (!count.ok()) return count.error();
  ++counters_.read_modify_writes;
  return {};
}

base::Status HoleWriter::write_back(const std::byte* bytes) {
  return write_counted(file_, hull_.begin, {bytes, hull_.length()}, counters_);
}

}  // namespace pario::exchange
