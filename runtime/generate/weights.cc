#include "runtime/generate/weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/file_header.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/spec_hash.h"
#include "runtime/generate/scorer.h"

namespace paceline::generate {

namespace {

using checkpoint::TensorEntry;

constexpr int kMostTries = 10;
constexpr std::size_t kPieceValues = 1 << 14;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Who trains meanwhile removes old checkpoints, perhaps while they are read: then there are newer ones.
absl::StatusOr<checkpoint::LoadedCheckpoint> load_newest(const checkpoint::CheckpointStore& store,
                                                         const checkpoint::GoOn& go_on) {
  for (int tries = 1;; ++tries) {
    const auto newest = store.newest();
    auto loaded = store.load_latest(go_on);
    if (loaded.ok() || absl::IsCancelled(loaded.status()) || tries == kMostTries) return loaded;
    const auto now = store.newest();
    if (!newest.ok() || !now.ok() || *now == *newest) return loaded;
  }
}

// The one of that name, or the newest of the folder.
absl::StatusOr<checkpoint::LoadedCheckpoint> load(checkpoint::FileStore& files, const std::string& parent,
                                                  const std::string& name, const checkpoint::GoOn& go_on) {
  const checkpoint::CheckpointStore store(files, parent, 1);
  if (name.empty()) return load_newest(store, go_on);
  auto loaded = store.load(name, go_on);
  if (absl::IsNotFound(loaded.status()))
    return absl::NotFoundError(
        str_cat("no complete checkpoint ", parent, "/", name, ": ", loaded.status().message()));
  if (!loaded.ok()) return with_context(loaded.status(), str_cat(parent, "/", name));
  return loaded;
}

// Whether a tensor is that parameter.
absl::Status check(const TensorEntry& tensor, const tensor::Parameter& parameter) {
  const auto other = [&](const std::string& found, const std::string& expected) {
    return absl::InvalidArgumentError(str_cat("tensor '", tensor.name, "' is ", found,
                                              ", the job's model has ", expected,
                                              ": it is of another model"));
  };
  if (tensor.dims != parameter.dims)
    return other(tensor::dims_text(tensor.dims), tensor::dims_text(parameter.dims));
  if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kBF16)
    return other(dtype_name(tensor.dtype), "F32 or BF16");
  return absl::OkStatus();
}

absl::Status read_all(checkpoint::FileReader& file, std::span<std::byte> out) {
  PL_ASSIGN_OR_RETURN(const std::size_t got, file.read(out));
  if (got == out.size()) return absl::OkStatus();
  return absl::DataLossError(
      str_cat("it ends ", out.size() - got, " bytes early: it shrank while it was read"));
}

// A tensor's values, which come next in the file.
absl::Status read_values(checkpoint::FileReader& file, DType dtype, std::span<float> out) {
  if (dtype == DType::kF32) return read_all(file, std::as_writable_bytes(out));
  std::array<BFloat16, kPieceValues> piece;
  while (!out.empty()) {
    const auto now = std::span(piece).first(std::min(out.size(), piece.size()));
    PL_RETURN_IF_ERROR(read_all(file, std::as_writable_bytes(now)));
    std::transform(now.begin(), now.end(), out.begin(),
                   [](BFloat16 value) { return static_cast<float>(value); });
    out = out.subspan(now.size());
  }
  return absl::OkStatus();
}

// RESOURCE_EXHAUSTED: no memory.
absl::Status make_room(std::size_t count, std::vector<float>& values) {
  try {
    values.resize(count);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(str_cat("no memory for the model's ", count, " weights"));
  }
}

// The model's parameters by the names of the file's tensors, in their order.
absl::StatusOr<std::vector<const tensor::Parameter*>> parameters_of(
    const checkpoint::SafetensorsHeader& header, const tensor::ParameterLayout& layout) {
  std::map<std::string_view, std::size_t> at;
  for (std::size_t i = 0; i < header.tensors.size(); ++i) at[header.tensors[i].name] = i;
  std::vector<const tensor::Parameter*> found(header.tensors.size());
  for (const tensor::Parameter& parameter : layout.parameters) {
    const auto tensor = at.find(parameter.name);
    if (tensor == at.end()) {
      return absl::InvalidArgumentError(str_cat("there is no tensor '", parameter.name,
                                                "', which the job's model has: it is of another model"));
    }
    PL_RETURN_IF_ERROR(check(header.tensors[tensor->second], parameter));
    found[tensor->second] = &parameter;
  }
  if (header.tensors.size() == layout.parameters.size()) return found;
  return absl::InvalidArgumentError(str_cat("it has ", header.tensors.size(), " tensors, the job's model ",
                                            layout.parameters.size(), ": it is of another model"));
}

// What the file is, is known before memory is taken.
absl::Status read_tensors(checkpoint::FileReader& file, const tensor::ParameterLayout& layout,
                          LoadedWeights& weights) {
  PL_ASSIGN_OR_RETURN(const checkpoint::SafetensorsHeader header, checkpoint::read_header(file));
  PL_ASSIGN_OR_RETURN(const auto parameters, parameters_of(header, layout));
  PL_RETURN_IF_ERROR(make_room(layout.elements, weights.values));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto out = std::span(weights.values).subspan(parameters[i]->offset, parameters[i]->count);
    PL_RETURN_IF_ERROR(read_values(file, header.tensors[i].dtype, out));
  }
  const auto step = header.metadata.find("step");
  if (step == header.metadata.end() || !absl::SimpleAtoi(step->second, &weights.step)) weights.step = -1;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedWeights> read_checkpoint(checkpoint::FileStore& files, const std::string& folder,
                                              const v1::TrainingSpec& spec, const checkpoint::GoOn& go_on) {
  PL_ASSIGN_OR_RETURN(const tensor::ParameterLayout layout, weights_layout(spec.model().gpt()));
  const std::string path = without_slashes(folder);
  const std::string last = path.substr(path.rfind('/') + 1);  // all of it where there is none
  const bool one = checkpoint::step_of(last) >= 0;
  const std::string parent = one ? checkpoint::folder_of(path) : path;
  PL_ASSIGN_OR_RETURN(checkpoint::LoadedCheckpoint loaded, load(files, parent, one ? last : "", go_on));
  LoadedWeights weights;
  weights.path = str_cat(parent, "/", loaded.name);
  if (loaded.progress.spec_hash != checkpoint::spec_hash(spec)) {
    return absl::InvalidArgumentError(
        str_cat(weights.path,
                " was made with another model, kind of optimizer, global batch, seed or precision than the "
                "job's"));
  }
  weights.step = loaded.progress.step;
  weights.refused = std::move(loaded.refused);
  const checkpoint::TensorView* const saved = loaded.find("weights");
  const std::size_t needed = layout.elements * sizeof(float);
  if (saved != nullptr && saved->data.size() != needed)
    return absl::DataLossError(str_cat(weights.path, ": tensor 'weights' has ", saved->data.size(),
                                       " bytes, the job's model needs ", needed, "; was the model changed?"));
  PL_RETURN_IF_ERROR(with_context(make_room(layout.elements, weights.values), weights.path));
  const absl::Status copied =
      loaded.copy_to("weights", DType::kF32, std::as_writable_bytes(std::span(weights.values)));
  if (!copied.ok()) return with_context(copied, parent);
  return weights;
}

absl::StatusOr<LoadedWeights> read_model(const checkpoint::FileStore& files, const std::string& path,
                                         const v1::GptSpec& spec) {
  PL_ASSIGN_OR_RETURN(const tensor::ParameterLayout layout, weights_layout(spec));
  LoadedWeights weights;
  weights.path =
      path.ends_with(".safetensors") ? path : str_cat(without_slashes(path), "/", checkpoint::kModelFile);
  PL_ASSIGN_OR_RETURN(const auto file, files.open_file(weights.path));
  if (const absl::Status read = read_tensors(*file, layout, weights); !read.ok())
    return with_context(read, weights.path);
  return weights;
}

}  // namespace paceline::generate
