// Opening a shared file: rank 0 creates the file and reads its layout, the others follow.
#pragma once

#include <memory>
#include <string>

#include "parallel/engine/opened_file.hpp"

namespace pario::engine {

/// The steps of one SharedFile::open(); used once. All functions except those that open are
/// collective.
class Opening {
 public:
  Opening(std::shared_ptr<comm::Comm> comm, const OpenRequest& request, const Opener& opener);
  base::Result<std::unique_ptr<SharedFile>> run();

 private:
  /// The facts that rank 0 has read; plain words, sent unchanged.
  struct Facts {
    int failed = 0;               ///< errno
    int access = 0;               ///< O_RDONLY, O_WRONLY or O_RDWR
    std::uint64_t text_size = 0;  ///< of the text after the facts: the hints, or the error
    std::uint64_t number = 0;     ///< random, for names
    layout::StripeLayout layout = {};
    bool has_stripes = false;
  };

  base::Status run_steps();
  base::Status open_first();
  base::Status open_readable();
  base::Status open_with_flags(int flags);
  file::OpenRequest make_file_request(int flags) const;
  base::Status share_facts(const base::Status& mine);
  base::Status make_calls();
  base::Status make_gate_and_pointer();
  std::byte* make_own_memory(std::size_t gate_size);
  base::Status share_windows();
  void make_handle_locks();
  base::Error describe_failure();
  void set_policy();

  std::unique_ptr<OpenedFile> state_;
  FileContext& context_;
  const Opener& opener_;
  Facts facts_ = {};
  std::byte* windows_memory_ = nullptr;  // for ReadAhead; null: several nodes
};

}  // namespace pario::engine
