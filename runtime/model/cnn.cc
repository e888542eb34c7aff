#include "runtime/model/cnn.h"

#include <utility>

#include "base/status.h"
#include "runtime/model/layers.h"

namespace paceline::model {

namespace {

class Cnn final : public Model {
 public:
  explicit Cnn(v1::CnnSpec spec) : spec_(std::move(spec)) {}

  absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const override {
    PL_RETURN_IF_ERROR(check_classification(sample, spec_.classes()));
    if (sample.dims.size() != 3) {
      return absl::InvalidArgumentError(
          str_cat("cnn: samples must be {channels, height, width}, the data's are ",
                  tensor::dims_text(sample.dims), ": set data.shape"));
    }
    const std::int64_t kernel = spec_.kernel_size();
    tensor::Value h = graph.input(sample.dims);
    for (int i = 0; i < spec_.channels_size(); ++i) {
      const auto& dims = graph.dims(h);
      if (dims.size() == 3 && (dims[1] < 2 || dims[2] < 2)) {
        return absl::InvalidArgumentError(str_cat(
            "cnn: samples of ", tensor::dims_text(sample.dims), " are too small for ", spec_.channels_size(),
            " poolings; block ", i + 1, " would get ", tensor::dims_text(dims)));
      }
      h = graph.conv(str_cat("conv", i + 1), h, spec_.channels(i), kernel, 1, kernel / 2);
      h = graph.max_pool2d(activate(graph, spec_.activation(), h), 2, 2);
    }
    classify(graph, h, {spec_.hidden().begin(), spec_.hidden().end()}, spec_.activation(), spec_.classes());
    return graph.status();
  }

 private:
  const v1::CnnSpec spec_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> make_cnn(const v1::CnnSpec& spec) {
  if (spec.channels_size() == 0) return absl::InvalidArgumentError("cnn: channels is empty");
  for (const auto channels : spec.channels()) {
    if (channels < 1)
      return absl::InvalidArgumentError(str_cat("cnn: ", channels, " channels are not positive"));
  }
  if (spec.kernel_size() < 1 || spec.kernel_size() % 2 == 0) {
    return absl::InvalidArgumentError(
        str_cat("cnn: kernelSize is ", spec.kernel_size(), ", must be odd and positive"));
  }
  for (const auto width : spec.hidden()) {
    if (width < 1)
      return absl::InvalidArgumentError(str_cat("cnn: hidden width ", width, " is not positive"));
  }
  if (spec.classes() < 2)
    return absl::InvalidArgumentError(str_cat("cnn: classes is ", spec.classes(), ", must be at least 2"));
  return std::make_unique<Cnn>(spec);
}

}  // namespace paceline::model
