#include "runtime/tensor/cpu/aligned_buffer.h"

#include "base/machine_load.h"
#include "base/text.h"
#include "runtime/tensor/memory_plan.h"

namespace paceline::tensor::cpu {

absl::Status no_memory(std::size_t bytes, std::string_view what) {
  const auto memory = free_memory(), space = free_address_space();
  const bool limited = space.has_value() && (!memory.has_value() || *space < *memory);
  const auto free = limited ? space : memory;
  return absl::ResourceExhaustedError(
      str_cat("there is no memory for ", mebibytes(bytes), " MiB of ", what,
              free.has_value() ? str_cat(", and ", free_mebibytes(*free), " MiB are free") : "",
              limited ? " of the process's address space (ulimit -v)" : ""));
}

}  // namespace paceline::tensor::cpu
