#include "tests/unit/runtime/tensor/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace paceline::tensor {

namespace {

using Array = std::vector<double>;

Array linear(const Array& x, const Array& w, const Array* bias, std::int64_t in, std::int64_t out) {
  const std::int64_t positions = static_cast<std::int64_t>(x.size()) / in;
  Array y;
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias == nullptr ? 0 : (*bias)[o];
      for (std::int64_t i = 0; i < in; ++i) sum += x[p * in + i] * w[o * in + i];
      y.push_back(sum);
    }
  }
  return y;
}

Array conv2d(const Array& x, const Dims& xd, const Array& w, const Dims& wd, const Array* bias,
             const Dims& yd, const Attributes& a, std::int64_t rows) {
  Array y;
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t f = 0; f < yd[0]; ++f) {
      for (std::int64_t oi = 0; oi < yd[1]; ++oi) {
        for (std::int64_t oj = 0; oj < yd[2]; ++oj) {
          double sum = bias == nullptr ? 0 : (*bias)[f];
          for (std::int64_t c = 0; c < xd[0]; ++c) {
            for (std::int64_t ki = 0; ki < wd[2]; ++ki) {
              for (std::int64_t kj = 0; kj < wd[3]; ++kj) {
                const std::int64_t i = oi * a.stride + ki - a.padding;
                const std::int64_t j = oj * a.stride + kj - a.padding;
                if (i < 0 || j < 0 || i >= xd[1] || j >= xd[2]) continue;
                sum += x[((n * xd[0] + c) * xd[1] + i) * xd[2] + j] *
                       w[((f * wd[1] + c) * wd[2] + ki) * wd[3] + kj];
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

Array max_pool(const Array& x, const Dims& xd, const Dims& yd, const Attributes& a, std::int64_t rows) {
  Array y;
  for (std::int64_t n = 0; n < rows * xd[0]; ++n) {
    for (std::int64_t oi = 0; oi < yd[1]; ++oi) {
      for (std::int64_t oj = 0; oj < yd[2]; ++oj) {
        double best = -std::numeric_limits<double>::infinity();
        for (std::int64_t i = 0; i < a.window; ++i) {
          for (std::int64_t j = 0; j < a.window; ++j) {
            best = std::max(best, x[(n * xd[1] + oi * a.stride + i) * xd[2] + oj * a.stride + j]);
          }
        }
        y.push_back(best);
      }
    }
  }
  return y;
}

Array layer_norm(const Array& x, const Array& gain, const Array& bias, double epsilon) {
  const std::size_t width = gain.size();
  Array y(x.size());
  for (std::size_t p = 0; p < x.size(); p += width) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < width; ++i) mean += x[p + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      variance += (x[p + i] - mean) * (x[p + i] - mean) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      y[p + i] = (x[p + i] - mean) / std::sqrt(variance + epsilon) * gain[i] + bias[i];
  }
  return y;
}

Array attention(const Array& qkv, std::int64_t time, std::int64_t width, std::int64_t heads,
                std::int64_t rows) {
  const std::int64_t size = width / heads;
  Array y(static_cast<std::size_t>(rows * time * width), 0.0);
  const auto at = [&](std::int64_t n, std::int64_t t, std::int64_t part, std::int64_t h, std::int64_t i) {
    return qkv[(n * time + t) * 3 * width + part * width + h * size + i];
  };
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t t = 0; t < time; ++t) {
        Array weight;
        double sum = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::int64_t i = 0; i < size; ++i) score += at(n, t, 0, h, i) * at(n, s, 1, h, i);
          weight.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          sum += weight.back();
        }
        for (std::int64_t s = 0; s <= t; ++s) {
          for (std::int64_t i = 0; i < size; ++i)
            y[(n * time + t) * width + h * size + i] += weight[s] / sum * at(n, s, 2, h, i);
        }
      }
    }
  }
  return y;
}

template <typename F>
Array each(const Array& x, F f) {
  Array y;
  for (const double v : x) y.push_back(f(v));
  return y;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

Array Oracle::value(const Node& node, const std::vector<Array>& values, std::int64_t rows) const {
  const auto operand = [&](std::size_t i) -> const Array& {
    return values[static_cast<std::size_t>(node.inputs[i].id)];
  };
  const auto shape = [&](std::size_t i) -> const Dims& { return graph_.dims(node.inputs[i]); };
  const Array* bias = node.inputs.size() > 2 ? &operand(2) : nullptr;
  switch (node.kind) {
    case OpKind::kInput:
      return {inputs.begin(), inputs.begin() + rows * element_count(node.dims)};
    case OpKind::kTokens:
      return {tokens.begin(), tokens.begin() + rows * node.dims[0]};
    case OpKind::kOffset:
      return {offsets.begin(), offsets.begin() + rows};
    case OpKind::kParameter:
      return parameters.at(node.name);
    case OpKind::kLinear:
      return linear(operand(0), operand(1), bias, shape(1)[1], shape(1)[0]);
    case OpKind::kConv2d:
      return conv2d(operand(0), shape(0), operand(1), shape(1), bias, node.dims, node.attributes, rows);
    case OpKind::kMaxPool2d:
      return max_pool(operand(0), shape(0), node.dims, node.attributes, rows);
    case OpKind::kRelu:
      return each(operand(0), [](double v) { return std::max(v, 0.0); });
    case OpKind::kGelu:
      return each(operand(0), gelu);
    case OpKind::kTanh:
      return each(operand(0), [](double v) { return std::tanh(v); });
    case OpKind::kSigmoid:
      return each(operand(0), [](double v) { return 1 / (1 + std::exp(-v)); });
    case OpKind::kScale:
      return each(operand(0), [&](double v) { return v * static_cast<double>(node.attributes.factor); });
    case OpKind::kReshape:
      return operand(0);
    case OpKind::kAdd:
    case OpKind::kMultiply: {
      Array y = operand(0);
      const Array& b = operand(1);  // a parameter, or its first positions, repeats for every sample
      const std::size_t period = y.size() / static_cast<std::size_t>(rows);
      for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = node.kind == OpKind::kAdd ? y[i] + b[b.size() == y.size() ? i : i % period] : y[i] * b[i];
      return y;
    }
    case OpKind::kEmbedding: {
      Array y;
      const auto width = static_cast<std::size_t>(node.dims[1]);
      for (const double token : operand(0)) {
        for (std::size_t i = 0; i < width; ++i)
          y.push_back(operand(1)[static_cast<std::size_t>(token) * width + i]);
      }
      return y;
    }
    case OpKind::kLayerNorm:
      return layer_norm(operand(0), operand(1), operand(2), static_cast<double>(node.attributes.epsilon));
    case OpKind::kCausalSelfAttention:
      return attention(operand(0), node.dims[0], node.dims[1], node.attributes.heads, rows);
    case OpKind::kEmbeddingOfLabel: {
      Array y;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto begin = operand(0).begin() + labels[static_cast<std::size_t>(r)] * shape(0)[1];
        y.insert(y.end(), begin, begin + shape(0)[1]);
      }
      return y;
    }
    case OpKind::kCachedSelfAttention:
      break;  // one graph alone does not say what is in the cache
    case OpKind::kAtPosition: {
      Array y;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto begin =
            operand(0).begin() + (r * shape(0)[0] + labels[static_cast<std::size_t>(r)]) * shape(0)[1];
        y.insert(y.end(), begin, begin + shape(0)[1]);
      }
      return y;
    }
    case OpKind::kScores:
      return operand(0);
    case OpKind::kSoftmaxCrossEntropy: {
      const auto classes = static_cast<std::size_t>(shape(0).back());
      double sum = 0;
      for (std::size_t p = 0; p * classes < operand(0).size(); ++p) {
        double total = 0;
        for (std::size_t c = 0; c < classes; ++c) total += std::exp(operand(0)[p * classes + c]);
        sum += std::log(total) - operand(0)[p * classes + static_cast<std::size_t>(labels[p])];
      }
      return {sum * static_cast<double>(rows * static_cast<std::int64_t>(classes)) /
              static_cast<double>(operand(0).size())};
    }
    case OpKind::kSigmoidCrossEntropy: {
      double sum = 0;
      for (std::size_t i = 0; i < operand(0).size(); ++i)
        sum += std::log(1 + std::exp(labels[i] == 1 ? -operand(0)[i] : operand(0)[i]));
      return {sum};
    }
    case OpKind::kMeanSquaredError: {
      double sum = 0;
      for (std::size_t i = 0; i < operand(0).size(); ++i)
        sum += (operand(0)[i] - operand(1)[i]) * (operand(0)[i] - operand(1)[i]);
      return {sum * static_cast<double>(rows) / static_cast<double>(operand(0).size())};
    }
  }
  PL_CHECK(false, "the oracle knows every operator");
  return {};
}

std::vector<Array> Oracle::evaluate(std::int64_t rows) const {
  std::vector<Array> values;
  for (const Node& node : graph_.nodes()) values.push_back(value(node, values, rows));
  return values;
}

double Oracle::loss_sum(std::int64_t rows) const {
  return evaluate(rows)[static_cast<std::size_t>(graph_.loss().id)][0];
}

std::vector<double> Oracle::scores(std::int64_t rows) const {
  return evaluate(rows)[static_cast<std::size_t>(graph_.loss().id)];
}

std::int64_t Oracle::correct(std::int64_t rows) const {
  const Node& loss = graph_.nodes()[static_cast<std::size_t>(graph_.loss().id)];
  const auto logits = evaluate(rows)[static_cast<std::size_t>(loss.inputs[0].id)];
  const std::int64_t classes = graph_.dims(loss.inputs[0]).back();
  std::int64_t correct = 0;
  if (loss.kind == OpKind::kSigmoidCrossEntropy) {
    for (std::size_t i = 0; i < logits.size(); ++i) correct += (logits[i] > 0) == (labels[i] == 1);
    return correct;
  }
  for (std::size_t p = 0; static_cast<std::int64_t>(p) * classes < static_cast<std::int64_t>(logits.size());
       ++p) {
    const auto begin = logits.begin() + static_cast<std::int64_t>(p) * classes;
    correct += std::max_element(begin, begin + classes) - begin == labels[p];
  }
  return correct;
}

}  // namespace paceline::tensor
