#include "bindings/bindings.hpp"

NB_MODULE(_native, module) {
#ifdef NDEBUG
  nanobind::set_leak_warnings(false);  // what daemon threads hold in the end is no news to users
#endif
  pario::bindings::add_events(module);
  pario::bindings::add_hints(module);
  pario::bindings::add_records(module);
  pario::bindings::add_loader(module);
  pario::bindings::add_archive(module);
  pario::bindings::add_checkpoint(module);
  pario::bindings::add_model(module);
  pario::bindings::add_replay(module);
  pario::bindings::add_storage(module);
  pario::bindings::add_stripes(module);
  pario::bindings::add_ways(module);
}
