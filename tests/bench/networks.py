"""The networks that peers.py measures: PyTorch modules and inputs, by the name of the model's text.

Parameters have the same names as in the texts. Other models of the collection are missing for these reasons: `onnx_*`, `s_*`, `gpt2`
and `resnet18_dynbatch` are the same networks; `train_cnn` computes gradients, which onnxruntime cannot; `nn_llama3_8b_32l_f16` is not
of `float32`; and `sd_unet_upblock`, a part of diffusers, is not implemented here yet.
"""

import torch
from torch import nn
from torch.nn import functional


def first(value):
    """Returns a result's tensor; for a record or tuple, the first one."""
    while not isinstance(value, torch.Tensor):
        value = value[0]
    return value


class Wrapped(nn.Module):
    """A module whose parameters' names have a prefix."""

    def forward(self, *inputs):
        (part,) = self.children()
        return first(part(*inputs))


def wrapped(**parts):
    outer = Wrapped()
    for name, part in parts.items():
        outer.add_module(name, part)
    return outer


def dcgan():
    """The generator of DCGAN (Radford et al., 2015), 64² images."""
    layers, channels = [], [100, 512, 256, 128, 64, 3]
    for at, (have, want) in enumerate(zip(channels, channels[1:])):
        stride, padding = (1, 0) if at == 0 else (2, 1)
        layers.append(nn.ConvTranspose2d(have, want, 4, stride, padding, bias=False))
        layers += [nn.BatchNorm2d(want), nn.ReLU()] if want != 3 else [nn.Tanh()]
    return wrapped(main=nn.Sequential(*layers))


class Pointwise(nn.Module):
    """A 1×1 convolution and SiLU."""

    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(768, 256, 1)

    def forward(self, x):
        return functional.silu(self.c(x))


class Tagger(nn.Module):
    """A tagger: word embeddings, an LSTM, and a score per tag."""

    def __init__(self):
        super().__init__()
        self.e, self.l, self.o = nn.Embedding(5000, 128), nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 32)

    def forward(self, x):
        return self.o(self.l(self.e(x))[0])


def twice(have, want):
    """Returns two convolutions, each with normalization and activation."""
    def one(have):
        return [nn.Conv2d(have, want, 3, padding=1, bias=False), nn.BatchNorm2d(want), nn.ReLU()]

    return nn.Sequential(*one(have), *one(want))


class Unet(nn.Module):
    """U-Net (Ronneberger et al., 2015), four levels."""

    def __init__(self):
        super().__init__()
        widths = [32, 64, 128, 256, 512]
        steps = list(zip(widths, widths[1:]))
        self.inc = twice(3, 32)
        self.downs = nn.ModuleList(twice(have, want) for have, want in steps)
        self.ups = nn.ModuleList(nn.ConvTranspose2d(want, have, 2, 2) for have, want in reversed(steps))
        self.decs = nn.ModuleList(twice(2 * have, have) for have, _ in reversed(steps))
        self.head = nn.Conv2d(32, 2, 1)

    def forward(self, x):
        seen = [self.inc(x)]
        for down in self.downs:
            seen.append(down(functional.max_pool2d(seen[-1], 2)))
        x = seen.pop()
        for up, dec in zip(self.ups, self.decs):
            x = dec(torch.cat((seen.pop(), up(x)), 1))
        return self.head(x)


def heads(x, count):
    """Splits features into heads: (batch, heads, words, features)."""
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(768), nn.LayerNorm(768)
        self.qkv, self.o = nn.Linear(768, 2304), nn.Linear(768, 768)
        self.f1, self.f2 = nn.Linear(768, 3072), nn.Linear(3072, 768)

    def forward(self, x, hidden):
        q, k, v = (heads(part, 12) for part in self.qkv(self.n1(x)).split(768, dim=-1))
        scores = ((q @ k.transpose(-1, -2)) * 0.125).masked_fill(hidden, float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = x + self.o(mixed)
        return x + self.f2(functional.gelu(self.f1(self.n2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2 (Radford et al., 2019), its smallest size."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blks, self.nf = nn.ModuleList(GptBlock() for _ in range(12)), nn.LayerNorm(768)

    def forward(self, idx):
        words = torch.arange(idx.shape[1], device=idx.device)
        x = self.wte(idx) + self.wpe(words)
        hidden = words[None, :] > words[:, None]
        for block in self.blks:
            x = block(x, hidden)
        return self.nf(x) @ self.wte.weight.t()


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, width, count, shared, inner):
        super().__init__()
        self.count, self.shared = count, shared
        self.n1, self.n2 = RmsNorm(width), RmsNorm(width)

        def linear(have, want):
            return nn.Linear(have, want, bias=False)

        of_shared = width // count * shared
        self.a = nn.ModuleDict({"q": linear(width, width), "k": linear(width, of_shared),
                                "v": linear(width, of_shared), "o": linear(width, width)})
        self.m = nn.ModuleDict({"g": linear(width, inner), "u": linear(width, inner), "d": linear(inner, width)})

    def forward(self, x, cosine, sine, mask):
        def turned(x):
            low, high = x.chunk(2, -1)
            return x * cosine + torch.cat((-high, low), -1) * sine

        y = self.n1(x)
        q, k = turned(heads(self.a["q"](y), self.count)), turned(heads(self.a["k"](y), self.shared))
        k, v = (part.repeat_interleave(self.count // self.shared, 1) for part in (k, heads(self.a["v"](y), self.shared)))
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 + mask
        x = x + self.a["o"]((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
        y = self.n2(x)
        return x + self.m["d"](functional.silu(self.m["g"](y)) * self.m["u"](y))


class Llama(nn.Module):
    """Llama (Touvron et al., 2023) of a given width, with grouped-query attention (heads share keys and values)."""

    def __init__(self, words, width, count, shared, inner, layers):
        super().__init__()
        self.emb = nn.Embedding(words, width)
        self.blks = nn.ModuleList(LlamaBlock(width, count, shared, inner) for _ in range(layers))
        self.nf, self.head = RmsNorm(width), nn.Linear(width, words, bias=False)
        features = width // count
        self.register_buffer("inv_freq", 10000.0 ** -(torch.arange(0, features, 2) / features))

    def forward(self, idx):
        length = idx.shape[1]
        angles = torch.arange(length, device=idx.device)[:, None].float() * self.inv_freq[None, :]
        angles = torch.cat((angles, angles), -1)
        mask = torch.full((length, length), float("-inf"), device=idx.device).triu(1)
        x = self.emb(idx)
        for block in self.blks:
            x = block(x, angles.cos(), angles.sin(), mask)
        return self.head(self.nf(x))


def vision(name):
    import torchvision

    return getattr(torchvision.models, name)(weights=None), [torch.randn(1, 3, 224, 224)]


def bert():
    import transformers

    model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=True)
    return wrapped(m=model), [torch.randint(0, 30522, (1, 128)), torch.ones(1, 128, dtype=torch.int64)]


def t5():
    import transformers

    return wrapped(m=transformers.T5EncoderModel(transformers.T5Config())), [torch.randint(0, 32128, (1, 128))]


MODELS = {
    **{name: (lambda name=name: vision(name)) for name in
       ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "densenet121", "vit_b_16"]},
    "conv1x1_768_256": lambda: (Pointwise(), [torch.randn(1, 768, 64, 64)]),
    "dcgan_g": lambda: (dcgan(), [torch.randn(1, 100, 1, 1)]),
    "unet": lambda: (Unet(), [torch.randn(1, 3, 128, 128)]),
    "lstm_tagger": lambda: (Tagger(), [torch.randint(0, 5000, (2, 32))]),
    "bert_base": bert,
    "t5_small_encoder": t5,
    "gpt2_dyn": lambda: (Gpt(), [torch.randint(0, 50257, (2, 64))]),
    "llama_2l_dyn": lambda: (Llama(32000, 1024, 16, 4, 2816, 2), [torch.randint(0, 32000, (2, 32))]),
    "llama_32l_dyn": lambda: (Llama(1024, 256, 8, 2, 704, 32), [torch.randint(0, 1024, (2, 32))]),
}
