"""`seedless env`: what on this machine changes bits, and the engines of portable arithmetic."""

from seedless.cli.options import AsJson, ConfigFile, Settings, print_json, print_line, read_config


def env(as_json: AsJson = False, config: ConfigFile = None, settings: Settings = None) -> None:
    """Show versions, processor, threads and flags that change bits.

    The digest covers them. The engines of portable matrix products are
    listed too; they change the time alone, and the digest leaves them out.
    """
    import torch

    from seedless.core.digests import digest_value
    from seedless.numerics.determinism import make_deterministic
    from seedless.numerics.environment import capture_environment
    from seedless.portable.engine_choice import explain_engine

    execution = read_config(config, settings).execution
    make_deterministic(threads=execution.threads, tf32=execution.precision == "tf32")
    environment = capture_environment()
    names = ["cpu", *(f"cuda:{number}" for number in range(len(environment["devices"])))]
    engines = {name: explain_engine(torch.device(name))._asdict() for name in names}
    if as_json:
        digest = digest_value(environment)
        print_json({**environment, "digest": digest, "portable_engines": engines})
        return
    for section, content in environment.items():
        if isinstance(content, dict):
            print_line(section)
            for key, value in content.items():
                print_line(f"  {key:<28} {'; '.join(value) if isinstance(value, list) else value}")
        elif isinstance(content, list):
            for number, device in enumerate(content):
                print_line(f"device {number}")
                for key, value in device.items():
                    print_line(f"  {key:<28} {value}")
            if not content:
                print_line("devices: none (CPU only)")
        else:
            print_line(f"{section:<30} {content}")
    print_line(f"{'digest':<30} {digest_value(environment)}")
    print_line("engines of portable matrix products (not in the digest: they change no bit)")
    for name, chosen in engines.items():
        print_line(f"  {name:<28} {chosen['engine']}, {chosen['reason']}")
