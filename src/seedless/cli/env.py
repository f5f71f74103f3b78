"""`seedless env`: what on this machine changes bits."""

from seedless.cli.options import AsJson, ConfigFile, Settings, print_json, print_line, read_config


def env(as_json: AsJson = False, config: ConfigFile = None, settings: Settings = None) -> None:
    """Show versions, processor, threads and flags that change bits."""

    from seedless.core.digests import digest_value
    from seedless.numerics.determinism import make_deterministic
    from seedless.numerics.environment import capture_environment

    execution = read_config(config, settings).execution
    make_deterministic(threads=execution.threads, tf32=execution.precision == "tf32")
    environment = capture_environment()
    if as_json:
        print_json({**environment, "digest": digest_value(environment)})
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
