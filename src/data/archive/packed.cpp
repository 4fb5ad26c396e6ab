#include "data/archive/packed.hpp"

#include <cerrno>
#include <exception>

#include "data/archive/member_stream.hpp"

namespace pario::archive {

base::Result<Archive> Archive::open(const std::string& directory) {
  auto index = Index::open(directory + "/" + kIndex);
  return index.ok() ? Archive(directory, std::move(*index)) : base::Result<Archive>(index.error());
}

base::Result<std::string> Archive::read(std::size_t member) const try {
  const auto stream = MemberStream::open(*this, member);
  if (!stream.ok()) return stream.error();
  std::string out;
  out.reserve((*stream)->size());
  for (;;) {
    const auto bytes = (*stream)->next();
    if (!bytes.ok()) return bytes.error();
    if (bytes->empty()) return out;
    out.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
} catch (const std::exception&) {  // std::string, of a size that is too large
  const std::string name(index_.name(member));
  return base::Error{.number = ENOMEM, .operation = "read", .path = path_ + ": " + name};
}

}  // namespace pario::archive
