// Quotas: limits on the bytes and files that a user or a directory may store.
#include <fcntl.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "core/file/posix.hpp"
#include "core/file/publication.hpp"
#include "core/file/stripes.hpp"
#include "core/file/subfiled.hpp"

namespace pario::file {
namespace {

void add_kernel_quota(int descriptor, int type, unsigned id, const char* whose,
                      std::vector<Quota>& out) {
  constexpr long kQuotactlFd = 443;  // Linux 5.14
  dqblk block{};
  if (::syscall(kQuotactlFd, descriptor, QCMD(Q_GETQUOTA, type), id, &block) != 0) return;
  out.push_back({whose + std::to_string(id), block.dqb_curspace, dbtob(block.dqb_bhardlimit),
                 block.dqb_curinodes, block.dqb_ihardlimit});
}

std::uint64_t number_of(const std::string& path, const char* attribute) {
  std::array<char, 32> text{};
  const ssize_t size = ::getxattr(path.c_str(), attribute, text.data(), text.size());
  return size > 0 ? base::leading_number({text.data(), static_cast<std::size_t>(size)}) : 0;
}

void add_ceph_quota(const std::string& directory, std::vector<Quota>& out) {
  const std::uint64_t bytes = number_of(directory, "ceph.quota.max_bytes"),
                      files = number_of(directory, "ceph.quota.max_files");
  if (bytes == 0 && files == 0) return;
  out.push_back({"directory " + directory, number_of(directory, "ceph.dir.rbytes"), bytes,
                 number_of(directory, "ceph.dir.rentries"), files});
}

}  // namespace

std::vector<Quota> quotas_of(const std::string& path) {
  std::vector<Quota> out;
  base::Result<int> opened = open_descriptor(path, O_RDONLY | O_NONBLOCK, 0);
  if (opened.ok()) {
    const Descriptor descriptor(*opened);
    add_kernel_quota(descriptor.number(), USRQUOTA, ::getuid(), "user ", out);
    add_kernel_quota(descriptor.number(), GRPQUOTA, ::getgid(), "group ", out);
  }
  for (std::string above = real_path(path); !above.empty() && above != "/";
       above = directory_of(above))
    add_ceph_quota(above, out);
  return out;
}

}  // namespace pario::file
