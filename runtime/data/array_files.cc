#include "runtime/data/array_files.h"

#include <cmath>
#include <cstring>

#include "base/status.h"

namespace paceline::data {

namespace {

using Parser = absl::StatusOr<FileArray> (*)(std::span<const std::byte>);

absl::Status add_rows(const std::shared_ptr<const InputFile>& file, const FileArray& array, ArrayRows& rows) {
  std::vector<std::int64_t> dims;
  if (array.dims.size() == 3 || array.dims.size() == 1) dims.push_back(1);
  for (std::size_t d = 1; d < array.dims.size(); ++d) dims.push_back(array.dims[d]);
  if (!rows.parts.empty() && (dims != rows.dims || array.type != rows.type)) {
    return absl::InvalidArgumentError(str_cat(file->path(), ": rows of shape ", dims_text(dims),
                                              " or their type differ from those of the first file, ",
                                              dims_text(rows.dims)));
  }
  rows.dims = std::move(dims);
  rows.type = array.type;
  const std::int64_t count = array.dims[0];
  const std::int64_t stride = static_cast<std::int64_t>(array.data.size()) / count;
  const std::shared_ptr<const void> owner = array.owner != nullptr ? array.owner : file;
  rows.parts.push_back({owner, array.data.data(), stride, count, file->path()});
  return absl::OkStatus();
}

template <typename T>
absl::Status add_labels(const InputFile& file, std::span<const std::byte> data,
                        std::vector<std::int32_t>& labels) {
  const std::size_t count = data.size() / sizeof(T);
  labels.reserve(labels.size() + count);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
    const auto number = static_cast<double>(value);
    if (!(number >= 0 && number <= kMaxLabel && number == std::floor(number))) {
      return absl::InvalidArgumentError(str_cat(file.path(), ": label ", i, " is ", number,
                                                "; allowed: whole numbers from 0 to ", kMaxLabel));
    }
    labels.push_back(static_cast<std::int32_t>(number));
  }
  return absl::OkStatus();
}

absl::Status add_labels(const InputFile& file, const FileArray& array, std::vector<std::int32_t>& labels) {
  if (array.dims.size() > 2 || (array.dims.size() == 2 && array.dims[1] != 1)) {
    return absl::InvalidArgumentError(str_cat(file.path(), ": labels of shape ", dims_text(array.dims),
                                              "; allowed: one number per sample"));
  }
  return visit(array.type,
               [&](auto number) { return add_labels<decltype(number)>(file, array.data, labels); });
}

absl::StatusOr<FileArray> parse(const InputFile& file, Parser parser) {
  auto array = parser(file.bytes());
  if (!array.ok()) return with_context(array.status(), file.path());
  return array;
}

absl::StatusOr<LabelledRows> read_arrays(Files inputs, Files labels, Parser parser) {
  if (labels.empty())
    return absl::InvalidArgumentError("labels: this format keeps them in files of their own; none are given");
  LabelledRows result;
  for (const auto& file : inputs) {
    PL_ASSIGN_OR_RETURN(const FileArray array, parse(*file, parser));
    PL_RETURN_IF_ERROR(add_rows(file, array, result.rows));
  }
  for (const auto& file : labels) {
    PL_ASSIGN_OR_RETURN(const FileArray array, parse(*file, parser));
    PL_RETURN_IF_ERROR(add_labels(*file, array, result.labels));
  }
  if (static_cast<std::int64_t>(result.labels.size()) != result.rows.rows()) {
    return absl::InvalidArgumentError(str_cat(inputs.front()->path(), ": ", result.rows.rows(),
                                              " samples, but ", labels.front()->path(), " has ",
                                              result.labels.size(), " labels"));
  }
  return result;
}

}  // namespace

absl::StatusOr<LabelledRows> read_idx(Files inputs, Files labels) {
  return read_arrays(inputs, labels, parse_idx);
}

absl::StatusOr<LabelledRows> read_npy(Files inputs, Files labels) {
  return read_arrays(inputs, labels, parse_npy);
}

absl::StatusOr<LabelledRows> read_cifar10(Files inputs) {
  LabelledRows result;
  result.rows.dims = {3, 32, 32};
  for (const auto& file : inputs) {
    const auto count = count_cifar_records(file->bytes());
    if (!count.ok()) return with_context(count.status(), file->path());
    const std::byte* data = file->bytes().data();
    result.rows.parts.push_back({file, data + 1, kCifarRecordBytes, *count, file->path()});
    for (std::int64_t i = 0; i < *count; ++i) {
      result.labels.push_back(std::to_integer<std::int32_t>(data[i * kCifarRecordBytes]));
    }
  }
  return result;
}

absl::StatusOr<LabelledRows> read_csv(Files inputs, const CsvOptions& options) {
  LabelledRows result;
  result.rows.type = ElementType::kF32;
  for (const auto& file : inputs) {
    const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    auto table = parse_csv(text, options);
    if (!table.ok()) return with_context(table.status(), file->path());
    if (!result.rows.parts.empty() && table->features != result.rows.dims[0]) {
      return absl::InvalidArgumentError(str_cat(file->path(), ": ", table->features + 1,
                                                " columns, the first file has ", result.rows.dims[0] + 1));
    }
    result.rows.dims = {table->features};
    const auto rows = static_cast<std::int64_t>(table->labels.size());
    const std::int64_t stride = table->features * static_cast<std::int64_t>(sizeof(float));
    const auto values = std::make_shared<const std::vector<float>>(std::move(table->values));
    result.rows.parts.push_back(
        {values, reinterpret_cast<const std::byte*>(values->data()), stride, rows, file->path()});
    result.labels.insert(result.labels.end(), table->labels.begin(), table->labels.end());
  }
  return result;
}

}  // namespace paceline::data
