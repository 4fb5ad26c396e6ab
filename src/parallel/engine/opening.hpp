// Opening a shared file: rank 0 creates the file and reads its layout, the others follow.
#pragma once

#include <fcntl.h>

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
    bool has_subfiles = false;
  };

  base::Status run_steps();
  base::Status open_first();
  base::Status open_readable();
  base::Status open_with_flags(int flags);
  file::OpenRequest make_file_request(int flags) const;
  base::Status share_facts(const base::Status& mine);
  base::Status make_calls();
  /// The parts of a node's memory, in bytes and in their order; 0: the file has no such part.
  struct NodeParts {
    std::size_t state = 0;      ///< gate, shared pointer
    std::size_t locks = 0;      ///< of read-modify-writes by the ranks of the only node
    std::size_t run_ahead = 0;  ///< the order of calls without a meeting
    std::size_t windows = 0;    ///< read ahead
  };
  bool has_one_node() const { return context_.comm().topology().nodes() == 1; }
  bool may_write() const { return facts_.access != O_RDONLY; }
  NodeParts choose_parts() const;
  std::byte* make_node_memory(const NodeParts& parts);
  base::Status make_gate_and_pointer();
  void make_locks(std::byte* memory);
  base::Status share_windows();
  base::Status make_handle_locks();
  base::Error describe_failure();
  void set_policy();

  std::unique_ptr<OpenedFile> state_;
  FileContext& context_;
  const Opener& opener_;
  Facts facts_ = {};
  std::byte* windows_memory_ = nullptr;  // for ReadAhead; null: several nodes
};

}  // namespace pario::engine
