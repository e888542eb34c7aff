#include "runtime/tensor/compiler.h"

#include <utility>

#include "base/status.h"
#include "runtime/tensor/compiled_program.h"
#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

namespace {

absl::StatusOr<std::unique_ptr<CompiledProgram>> make_program(const GraphBuilder& graph, Device& device,
                                                              const CompileOptions& options) {
  if (options.max_rows < 1)
    return absl::InvalidArgumentError(str_cat("max_rows is ", options.max_rows, ", must be at least 1"));
  PL_ASSIGN_OR_RETURN(auto layout, lay_out_parameters(graph));
  const bool scores = graph.nodes()[static_cast<std::size_t>(graph.loss().id)].kind == OpKind::kScores;
  if (scores && options.mode == Mode::kTraining)
    return absl::InvalidArgumentError("the graph ends with scores(), of which there is nothing to train");
  if (options.max_rows > 1 && has_cache(graph))
    return absl::InvalidArgumentError(
        str_cat("max_rows is ", options.max_rows, ", and a key/value cache is of one sample"));
  return std::make_unique<CompiledProgram>(graph, std::move(layout), device, options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> compile(const GraphBuilder& graph, Device& device,
                                                 const CompileOptions& options) {
  PL_ASSIGN_OR_RETURN(auto program, make_program(graph, device, options));
  PL_RETURN_IF_ERROR(program->prepare());
  return program;
}

absl::StatusOr<std::size_t> program_bytes(const GraphBuilder& graph, Device& device,
                                          const CompileOptions& options) {
  PL_ASSIGN_OR_RETURN(const auto program, make_program(graph, device, options));
  return program->bytes();
}

}  // namespace paceline::tensor
