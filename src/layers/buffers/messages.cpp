#include "core/trace/trace.hpp"
#include "layers/buffers/buffers.hpp"

namespace pario::buffers {

void print_message(std::string_view sentence) {
  if (trace::on()) return trace::message(sentence);
  base::Text<2048> line;
  line.add("pario: ").add(sentence).add('\n');
  base::say(line.view());
}

}  // namespace pario::buffers
